// How charts are drawn: smoothing and axes, the same on every page, remembered by this browser.

import { duration, number } from "../format.js";
import { recall, remember } from "../storage.js";
import { html, signal } from "../ui.js";

export const look = signal({ smoothing: 0, log: false, logX: false, by: "step", system: false, ...recall("charts", {}) });

export function setLook(changes) {
  look.value = { ...look.value, ...changes };
  remember("charts", look.value);
}

// A place on the horizontal axis in words.
export const placeText = (by, x) => (by === "time" ? duration(x) : `${by} ${by === "step" ? x : number(x)}`);

export const NO_EPOCHS = "No epochs: log a metric called epoch";

export function ChartControls({ zoom, children }) {
  const { smoothing, log, logX, by } = look.value;
  const tickbox = (name, value, label) => html`<label><input type="checkbox" checked=${value} onChange=${(event) => setLook({ [name]: event.currentTarget.checked })} /> ${label}</label>`;
  return html`<div class="controls">
    ${zoom.value && html`<button class="link" onClick=${() => (zoom.value = null)}>Reset zoom</button>`}
    ${children}
    <label>Smoothing <input type="range" min="0" max="0.99" step="0.01" value=${smoothing}
      onInput=${(event) => setLook({ smoothing: Number(event.currentTarget.value) })} />
      <output class="num">${smoothing.toFixed(2)}</output></label>
    ${tickbox("log", log, "Log y")}
    ${tickbox("logX", logX, "Log x")}
    <div class="segments" role="group" aria-label="Horizontal axis">${["step", "time", "epoch"].map(
      (name) => html`<button key=${name} aria-pressed=${String(name === by)} onClick=${() => setLook({ by: name })}>${name}</button>`,
    )}</div>
  </div>`;
}
