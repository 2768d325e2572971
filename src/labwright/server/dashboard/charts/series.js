// Prepare the values of a metric for drawing. Pure functions.

import { toNumber } from "../format.js";

// Group keys by their prefix: "train/loss" is in the group "train". The group "" has the keys without a slash and those
// that would be alone in their group.
export function grouped(keys) {
  const groups = new Map();
  for (const key of keys) {
    const at = key.indexOf("/");
    const group = at > 0 ? key.slice(0, at) : "";
    groups.set(group, [...(groups.get(group) ?? []), key]);
  }
  const isRow = ([group, members]) => group && members.length > 1;
  const rest = [...groups].filter((entry) => !isRow(entry)).flatMap(([, members]) => members);
  return [["", rest.sort()], ...[...groups].filter(isRow).sort(([a], [b]) => (a < b ? -1 : 1))];
}

// Return columns in ascending x: x, raw values, smoothed values. Gaps are null. Also count the values that cannot be
// drawn (NaN, infinity, out of range) and the points before the first epoch.
export function columnsOf(series, { by, smoothing, log, logX }) {
  let [x, values] = placed(series, by);
  const placeless = series.values.length - x.length;
  if (logX) [x, values] = aboveZero(x, values);
  const drawable = values.map((value) => (isDrawable(value) && (!log || value > 0) ? value : null));
  return {
    columns: [x, drawable, smoothing ? smoothed(drawable, smoothing) : drawable],
    placeless,
    ...undrawnCounts(values, log),
  };
}

// Count the values that are not drawn, by reason.
export function undrawnCounts(values, log) {
  return {
    huge: values.filter((value) => Number.isFinite(value) && !isDrawable(value)).length,
    strange: values.filter((value) => !Number.isFinite(value)).length,
    hidden: values.filter((value) => Number.isFinite(value) && log && value <= 0).length,
  };
}

// The length of an axis from -1e308 to 1e308 overflows.
export const isDrawable = (value) => Math.abs(value) <= 1e300;

function placed(series, by) {
  const raw = series.values.map(toNumber);
  const places = (by === "time" && series.times) || (by === "epoch" && series.epochs?.map(toNumber));
  if (!places) return [series.steps, raw];
  const order = [...places.keys()]
    .filter((index) => Number.isFinite(places[index]))
    .sort((a, b) => places[a] - places[b]);
  const start = by === "time" ? (places[order[0]] ?? 0) : 0;
  return [order.map((index) => places[index] - start), order.map((index) => raw[index])];
}

// A log axis starts above zero: drop step 0.
function aboveZero(x, values) {
  const kept = [...x.keys()].filter((index) => x[index] > 0);
  return [kept.map((index) => x[index]), kept.map((index) => values[index])];
}

// Exponential moving average with bias correction, as in TensorBoard.
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
