// How charts are drawn: smoothing and axes, the same on every page, remembered by this browser.

import { recall, remember } from "../data/storage.js";
import { duration, number } from "../format.js";
import { html, signal } from "../view.js";

export const look = signal({
  smoothing: 0,
  log: false,
  logX: false,
  by: "step",
  system: false,
  ...recall("charts", {}),
});

export function setLook(changes) {
  look.value = { ...look.value, ...changes };
  remember("charts", look.value);
}

// A place on the horizontal axis in words.
export const placeText = (by, x) => (by === "time" ? duration(x) : `${by} ${by === "step" ? x : number(x)}`);

export const NO_EPOCHS = "No epochs: log a metric called epoch";

export function ChartControls({ zoom, children }) {
  const { smoothing, log, logX, by } = look.value;
  const tickbox = (name, value, label) =>
    html`<label>
      <input type="checkbox" checked=${value} onChange=${(event) => setLook({ [name]: event.currentTarget.checked })} />${" "}
      ${label}
    </label>`;
  return html`<div class="controls">
    ${
      zoom.value &&
      html`<button class="link" onClick=${() => (zoom.value = null)}>
        Reset zoom
      </button>`
    }
    ${children}
    <label>
      Smoothing${" "}
      <input
        type="range"
        min="0"
        max="0.99"
        step="0.01"
        value=${smoothing}
        onInput=${(event) => setLook({ smoothing: Number(event.currentTarget.value) })}
      />
      <output class="num">${smoothing.toFixed(2)}</output>
    </label>
    ${tickbox("log", log, "Log y")}
    ${tickbox("logX", logX, "Log x")}
    <div class="segments" role="group" aria-label="Horizontal axis">
      ${["step", "time", "epoch"].map(
        (name) =>
          html`<button key=${name} aria-pressed=${String(name === by)} onClick=${() => setLook({ by: name })}>
            ${name}
          </button>`,
      )}
    </div>
  </div>`;
}

// What a chart does not show of its numbers, in words below it.

export function ChartNote({ data, refused = [], isEmpty }) {
  const parts = [];
  if (data.placeless) parts.push(data.columns[0].length ? `${data.placeless} before the first epoch` : NO_EPOCHS);
  if (data.strange) parts.push(`${data.strange} NaN or infinite`);
  if (data.huge) parts.push(`${data.huge} too large to draw`);
  if (data.hidden) parts.push(`${data.hidden} not above zero, not on a log axis`);
  for (const { count, why } of refused) parts.push(`${count} not taken: ${why}`);
  if (!parts.length) return null;
  return html`<p class="chart-note ${isEmpty ? "chart-note-big" : ""}">${parts.join(" · ")}</p>`;
}
