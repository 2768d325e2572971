// A form for a group of settings. If the server refuses a value, its message is shown and nothing is saved.

import { text } from "../format.js";
import { html, useState } from "../view.js";
import { patch } from "../data/api.js";
import { isPerson } from "../data/session.js";
import { useFormDraft } from "../ui/drafts.js";
import { showToast } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";

const RESTART = "labwright down && labwright up -d";

export function SettingsForm({ help, settings, refresh, label }) {
  const { fields, set, clear, drop } = useFormDraft(`settings: ${label}`);
  const [problem, setProblem] = useState(null);
  const [busy, run] = useVerb({ refresh, onError: setProblem });
  const shown = Object.keys(help)
    .map((name) => settings.find((one) => one.name === name))
    .filter(Boolean);
  const valueOf = ({ name, following }) => fields[name] ?? asText(following);
  const changed = shown.filter((one) => valueOf(one) !== asText(one.following));
  const save = async () => {
    const body = Object.fromEntries(changed.map((one) => [one.name, asValue(valueOf(one), one)]));
    const after = await patch("settings", body);
    const later = after.filter((one) => one.name in fields && one.value !== one.following).map(({ name }) => name);
    if (later.length) showToast(`Saved. ${later.join(", ")} takes effect after a restart.`, { hint: RESTART });
    else showToast("Saved and applied.");
    clear();
  };
  const submit = (event) => {
    event.preventDefault();
    setProblem(null);
    run(save);
  };
  return html`<form class="card settings-form" onSubmit=${submit} aria-label=${label}>
    ${shown.map(
      (one) =>
        html`<${Row}
          key=${one.name}
          setting=${one}
          help=${help[one.name]}
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

function Row({ setting, help, value, onChange }) {
  const { name, bounds, by_variable: isFixed, at_start: atStart } = setting;
  const isSwitch = typeof setting.default === "boolean";
  const locked = isFixed || !isPerson();
  const notes = [
    isFixed && `Set by LABWRIGHT_${name.toUpperCase()}.`,
    atStart && "Needs a restart.",
    setting.value !== setting.following && `Currently ${text(setting.value)}.`,
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
      ${help}.${bounds ? ` Range: ${bounds[0]} to ${bounds[1].toLocaleString("en")}.` : ""}
      ${bounds || isSwitch ? ` Default: ${asText(setting.default)}.` : ""}${" "}
      ${notes.length > 0 && html`<strong>${notes.join(" ")}</strong>`}
    </p>
  </div>`;
}

const asText = (value) => String(value);

const DECIMAL = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i; // not 0x10

// Convert the typed text. Empty means the default. Invalid numbers are sent as text, so that the server explains them.
function asValue(typed, { default: standard }) {
  if (typeof standard === "boolean") return typed === "true";
  if (typeof standard === "string") return typed.trim() || null;
  if (!typed.trim()) return null;
  return DECIMAL.test(typed) && Number.isFinite(Number(typed)) ? Number(typed) : typed;
}

// The settings that can be changed here, with their help texts. docs/reference/settings.md lists all settings.

export const GROUPS = {
  models: {
    model: "Default model, as provider:model (empty = fixed rules, no data leaves the machine)",
    model_cheap: "Model for simple requests (empty = the default model)",
    model_heavy: "Model for hard requests (empty = the default model)",
    session_usd_limit: "Cost in dollars at which a conversation pauses and asks (0 = no limit)",
    session_token_limit: "Tokens at which a conversation pauses and asks (0 = no limit)",
    model_max_tokens: "Max tokens per response (0 = the provider's limit)",
    model_requests_per_minute: "Max requests per minute to one provider (0 = no limit)",
    model_silence_seconds: "Timeout for a silent connection, in seconds",
    model_answer_seconds: "Timeout per response, in seconds",
    model_retries: "Retries after a temporary error",
    agent_max_rounds: "Max model calls per turn",
  },
  limits: {
    max_parallel:
      "Max parallel runs without GPUs (0 = half of the cores). A value set on the cluster page takes precedence",
    ageing_seconds: "Seconds after which smaller runs no longer overtake a run that needs several GPUs",
    gpu_busy_memory_mb: "A GPU with more memory in use counts as busy",
    gpu_busy_utilization: "A GPU with a higher utilization (percent) counts as busy",
    grace_seconds: "Seconds between TERM and KILL when a run is stopped",
    log_cap_mb: "Max output size. Larger output keeps its start and end (0 = no limit)",
    system_metrics_seconds: "Seconds between samples of CPU, memory and disk (0 = off)",
    metrics_key_value: "Read key=value pairs in the output as metrics",
    keep_days: "Freeing space removes logs of runs that ended more days ago",
    keep_archived_days: "Freeing space deletes archived runs that ended more days ago",
    backup_minutes: "Minutes between database backups",
    backups_kept: "Number of backups to keep",
    agent_token_hours: "Lifetime of the token in a rendered skill, in hours",
  },
};
