// A group of settings to change. What is refused is told with the server's own words, and nothing of it is saved.

import { patch } from "../api.js";
import { text } from "../format.js";
import { isPerson } from "../session.js";
import { html, useState } from "../ui.js";
import { useFormDraft } from "./drafts.js";
import { say } from "./toast.js";

const RESTART = "labwright down && labwright up -d";

export function SettingsForm({ words, settings, refresh, label }) {
  const { fields, set, clear, drop } = useFormDraft(`settings: ${label}`);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const shown = Object.keys(words).map((name) => settings.find((one) => one.name === name)).filter(Boolean);
  const valueOf = ({ name, following }) => fields[name] ?? asText(following);
  const changed = shown.filter((one) => valueOf(one) !== asText(one.following));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      const after = await patch("settings", Object.fromEntries(changed.map((one) => [one.name, asValue(valueOf(one), one)])));
      const later = after.filter((one) => one.name in fields && one.value !== one.following).map(({ name }) => name);
      say(later.length ? `Saved. ${later.join(", ")} holds after the next start.` : "Saved, and in effect.", { hint: later.length ? RESTART : "" });
      clear();
      refresh();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  return html`<form class="card settings-form" onSubmit=${submit} aria-label=${label}>
    ${shown.map((one) => html`<${Row} key=${one.name} setting=${one} words=${words[one.name]} value=${valueOf(one)} onChange=${(value) => set(one.name, value, asText(one.following))} />`)}
    ${problem && html`<p class="hint-line hint-bad" role="alert">${problem.message} <span class="muted">${problem.hint}</span></p>`}
    ${isPerson() && html`<div class="verbs verbs-left"><button class="primary" disabled=${busy || !changed.length}>Save changes</button>${changed.length > 0 && html`<button type="button" onClick=${() => (drop(), setProblem(null))}>Discard</button>`}</div>`}
  </form>`;
}

function Row({ setting, words, value, onChange }) {
  const { name, bounds, by_variable: isFixed, at_start: atStart } = setting;
  const isSwitch = typeof setting.default === "boolean";
  const locked = isFixed || !isPerson();
  const notes = [isFixed && `set by LABWRIGHT_${name.toUpperCase()}`, atStart && "takes a restart", setting.value !== setting.following && `until then ${text(setting.value)}`].filter(Boolean);
  const input = isSwitch
    ? html`<input type="checkbox" id="set-${name}" checked=${value === "true"} disabled=${locked} onChange=${(event) => onChange(String(event.currentTarget.checked))} />`
    : html`<input id="set-${name}" type="text" inputmode=${bounds ? "decimal" : undefined} value=${value} disabled=${locked} placeholder=${asText(setting.default)} spellcheck=${false} autocomplete="off"
        aria-describedby="about-${name}" onInput=${(event) => onChange(event.currentTarget.value)} />`;
  return html`<div class="setting ${value === asText(setting.default) ? "" : "setting-own"}"><label for="set-${name}"><code>${name}</code></label>${input}
    <p class="muted small" id="about-${name}">${words}.${bounds ? ` ${bounds[0]} to ${bounds[1].toLocaleString("en")}, by` : isSwitch ? " By" : ""}${bounds || isSwitch ? ` default ${asText(setting.default)}.` : ""}${notes.length > 0 && html` <strong>${notes.join("; ")}</strong>`}</p></div>`;
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
