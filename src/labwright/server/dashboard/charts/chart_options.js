// Chart options: smoothing and axes, the same on every page, kept by this browser.

import { duration, number } from "../format.js";
import { html, signal } from "../view.js";
import { recall, remember } from "../data/storage.js";

export const chartOptions = signal({
  smoothing: 0,
  log: false,
  logX: false,
  by: "step",
  system: false,
  ...recall("charts", {}),
});

export function setChartOptions(changes) {
  chartOptions.value = { ...chartOptions.value, ...changes };
  remember("charts", chartOptions.value);
}

// Describe a position on the x axis.
export const positionText = (by, x) => (by === "time" ? duration(x) : `${by} ${by === "step" ? x : number(x)}`);

export const NO_EPOCHS = "No epochs. Log a metric named epoch.";

export function ChartControls({ zoom, children }) {
  const { smoothing, log, logX, by } = chartOptions.value;
  const tickbox = (name, value, label) =>
    html`<label>
      <input
        type="checkbox"
        checked=${value}
        onChange=${(event) => setChartOptions({ [name]: event.currentTarget.checked })}
      />${" "}
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
        onInput=${(event) => setChartOptions({ smoothing: Number(event.currentTarget.value) })}
      />
      <output class="num">${smoothing.toFixed(2)}</output>
    </label>
    ${tickbox("log", log, "Log y")}
    ${tickbox("logX", logX, "Log x")}
    <div class="segments" role="group" aria-label="X axis">
      ${["step", "time", "epoch"].map(
        (name) =>
          html`<button key=${name} aria-pressed=${String(name === by)} onClick=${() => setChartOptions({ by: name })}>
            ${name}
          </button>`,
      )}
    </div>
  </div>`;
}

// A note below a chart about values that it does not show.
export function ChartNote({ data, refused = [], isEmpty }) {
  const parts = [];
  if (data.placeless) parts.push(data.columns[0].length ? `${data.placeless} before the first epoch` : NO_EPOCHS);
  if (data.strange) parts.push(`${data.strange} NaN or infinite`);
  if (data.huge) parts.push(`${data.huge} too large to draw`);
  if (data.hidden) parts.push(`${data.hidden} hidden by the log axis (zero or less)`);
  for (const { count, why } of refused) parts.push(`${count} rejected: ${why}`);
  if (!parts.length) return null;
  return html`<p class="chart-note ${isEmpty ? "chart-note-big" : ""}">${parts.join(" · ")}</p>`;
}
