// A group of settings to change. What is refused is told with the server's own words, and nothing of it is saved.

import { patch } from "../data/api.js";
import { useFormDraft } from "../ui/drafts.js";
import { isPerson } from "../data/session.js";
import { text } from "../format.js";
import { html, useState } from "../view.js";
import { say } from "../ui/toast.js";

const RESTART = "labwright down && labwright up -d";

export function SettingsForm({ words, settings, refresh, label }) {
  const { fields, set, clear, drop } = useFormDraft(`settings: ${label}`);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const shown = Object.keys(words)
    .map((name) => settings.find((one) => one.name === name))
    .filter(Boolean);
  const valueOf = ({ name, following }) => fields[name] ?? asText(following);
  const changed = shown.filter((one) => valueOf(one) !== asText(one.following));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      const after = await patch(
        "settings",
        Object.fromEntries(changed.map((one) => [one.name, asValue(valueOf(one), one)])),
      );
      const later = after.filter((one) => one.name in fields && one.value !== one.following).map(({ name }) => name);
      say(later.length ? `Saved. ${later.join(", ")} holds after the next start.` : "Saved, and in effect.", {
        hint: later.length ? RESTART : "",
      });
      clear();
      refresh();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  return html`<form class="card settings-form" onSubmit=${submit} aria-label=${label}>
    ${shown.map(
      (one) =>
        html`<${Row}
          key=${one.name}
          setting=${one}
          words=${words[one.name]}
          value=${valueOf(one)}
          onChange=${(value) => set(one.name, value, asText(one.following))}
        />`,
    )}
    ${
      problem &&
      html`<p class="hint-line hint-bad" role="alert">
        ${problem.message} <span class="muted">${problem.hint}</span>
      </p>`
    }
    ${
      isPerson() &&
      html`<div class="verbs verbs-left">
        <button class="primary" disabled=${busy || !changed.length}>
          Save changes
        </button>
        ${
          changed.length > 0 &&
          html`<button type="button" onClick=${() => (drop(), setProblem(null))}>
            Discard
          </button>`
        }
      </div>`
    }
  </form>`;
}

function Row({ setting, words, value, onChange }) {
  const { name, bounds, by_variable: isFixed, at_start: atStart } = setting;
  const isSwitch = typeof setting.default === "boolean";
  const locked = isFixed || !isPerson();
  const notes = [
    isFixed && `set by LABWRIGHT_${name.toUpperCase()}`,
    atStart && "takes a restart",
    setting.value !== setting.following && `until then ${text(setting.value)}`,
  ].filter(Boolean);
  const input = isSwitch
    ? html`<input
      type="checkbox"
      id="set-${name}"
      checked=${value === "true"}
      disabled=${locked}
      onChange=${(event) => onChange(String(event.currentTarget.checked))}
    />`
    : html`<input
      id="set-${name}"
      type="text"
      inputmode=${bounds ? "decimal" : undefined}
      value=${value}
      disabled=${locked}
      placeholder=${asText(setting.default)}
      spellcheck=${false}
      autocomplete="off"
      aria-describedby="about-${name}"
      onInput=${(event) => onChange(event.currentTarget.value)}
    />`;
  return html`<div class="setting ${value === asText(setting.default) ? "" : "setting-own"}">
    <label for="set-${name}">
      <code>${name}</code>
    </label>
    ${input}
    <p class="muted small" id="about-${name}">
      ${words}.${bounds ? ` ${bounds[0]} to ${bounds[1].toLocaleString("en")}, by` : isSwitch ? " By" : ""}
      ${bounds || isSwitch ? ` default ${asText(setting.default)}.` : ""}
      ${notes.length > 0 && html`<strong>${notes.join("; ")}</strong>`}
    </p>
  </div>`;
}

const asText = (value) => String(value);

const DECIMAL = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i; // 0x10 is a slip of the finger, not sixteen

// Empty is the default again; what is no number goes as it was typed, and is refused with words.
function asValue(typed, { default: usual }) {
  if (typeof usual === "boolean") return typed === "true";
  if (typeof usual === "string") return typed.trim() || null;
  if (!typed.trim()) return null;
  return DECIMAL.test(typed) && Number.isFinite(Number(typed)) ? Number(typed) : typed;
}

// Settings that are changed here, in groups, with what they mean. All of them are in docs/reference/settings.md.

export const GROUPS = {
  models: {
    model: "Answers most questions, as provider:model. Empty: rules, and nothing leaves the machine",
    model_cheap: "For small questions. Empty: the model above",
    model_heavy: "For hard ones. Empty: the model above",
    session_usd_limit: "A conversation that cost so many dollars pauses and asks. 0: no limit",
    session_token_limit: "Likewise by tokens. 0: no limit",
    model_max_tokens: "Longest answer, in tokens. 0: as long as the provider lets it be",
    model_requests_per_minute: "At most so many questions to one provider. 0: no limit",
    model_silence_seconds: "A connection that is silent for longer is given up",
    model_answer_seconds: "Nor may one whole answer take longer",
    model_retries: "Further tries after a fault that passes",
    agent_max_rounds: "Answers of a model in one turn; then it stops and says so",
  },
  limits: {
    max_parallel:
      "Runs without GPUs at a time. 0: half the usable cores. A number set by hand on the cluster page goes before it",
    ageing_seconds: "After so long a run that wants several GPUs is no longer passed by narrower ones",
    gpu_busy_memory_mb: "A card with more memory in use is not free",
    gpu_busy_utilization: "Nor one that is busier than this, in percent",
    grace_seconds: "Between TERM and KILL when a run is stopped",
    log_cap_mb: "A larger output keeps its head and its tail. 0: no cap",
    system_metrics_seconds: "Between samples of a run's processor, memory and disk. 0: none",
    metrics_key_value: "Take key=value pairs in the output as metrics",
    keep_days: "Freeing space removes logs of runs that ended longer ago",
    keep_archived_days: "And deletes archived runs that ended longer ago",
    backup_minutes: "Between backups of the database",
    backups_kept: "How many of the newest are kept",
    agent_token_hours: "How long the token of a rendered skill is valid",
  },
};
