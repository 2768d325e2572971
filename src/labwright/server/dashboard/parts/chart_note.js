// What a chart does not show of its numbers, in words below it.

import { html } from "../ui.js";
import { NO_EPOCHS } from "./chart_look.js";

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
