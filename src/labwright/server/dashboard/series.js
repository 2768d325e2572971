// Numbers of one metric made ready to draw. Nothing here knows of the page.

import { toNumber } from "./format.js";

// "train/loss" belongs to the group "train"; a key without a slash to the group "".
export function grouped(keys) {
  const groups = new Map();
  for (const key of keys) {
    const at = key.indexOf("/");
    const group = at > 0 ? key.slice(0, at) : "";
    groups.set(group, [...(groups.get(group) ?? []), key]);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

// Columns in ascending x: x, what was logged, what is drawn strong. Gaps are null. NaN and infinity cannot be drawn;
// they are counted, so that they can be told.
export function columnsOf(series, { by, smoothing, log, logX }) {
  const raw = series.values.map(toNumber);
  let x = series.steps;
  let values = raw;
  if (by === "time" && series.times) {
    const order = [...series.times.keys()].sort((a, b) => series.times[a] - series.times[b]);
    const start = series.times[order[0]] ?? 0;
    x = order.map((index) => series.times[index] - start);
    values = order.map((index) => raw[index]);
  }
  if (logX) [x, values] = aboveZero(x, values);
  const drawable = values.map((value) => (Number.isFinite(value) && (!log || value > 0) ? value : null));
  return {
    columns: [x, drawable, smoothing ? smoothed(drawable, smoothing) : drawable],
    strange: values.filter((value) => !Number.isFinite(value)).length,
    hidden: values.filter((value) => Number.isFinite(value) && log && value <= 0).length,
  };
}

// A log axis begins above zero: step 0 has no place on it.
function aboveZero(x, values) {
  const kept = [...x.keys()].filter((index) => x[index] > 0);
  return [kept.map((index) => x[index]), kept.map((index) => values[index])];
}

// Exponential moving average, corrected for its start, as TensorBoard does it.
export function smoothed(values, weight) {
  let last = 0;
  let mass = 0;
  return values.map((value) => {
    if (value === null) return null;
    last = last * weight + (1 - weight) * value;
    mass = mass * weight + (1 - weight);
    return last / mass;
  });
}
