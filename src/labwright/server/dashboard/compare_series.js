// One metric of several runs made ready to draw: one x for all, a column a curve, a band a group of seeds.

import { text, toNumber } from "./format.js";
import { isDrawable, notDrawn, smoothed } from "./series.js";
import uPlot from "./vendor/uplot.js";

const AXES = { step: "steps", time: "times", epoch: "epochs" };

const drawable = (values, log) => values.map(toNumber).map((value) => (isDrawable(value) && (!log || value > 0) ? value : null));

// `colors` by run id. With `mean` a group of several seeds is one curve with its band; single runs stay curves.
export function columnsOfRuns(found, { by, smoothing, log, logX, mean }, colors) {
  const axis = AXES[by];
  const tables = [];
  const lines = [];
  const bands = [];
  const add = (x, columns) => {
    const kept = logX ? [...x.keys()].filter((at) => x[at] > 0) : null;
    tables.push([x, ...columns].map((column) => (kept ? kept.map((at) => column[at]) : column)));
  };
  const curve = (x, values, color, name) => {
    const clean = drawable(values, log);
    if (!x.length || clean.every((value) => value === null)) return;
    add(x, [smoothing ? smoothed(clean, smoothing) : clean]);
    lines.push({ color, name, dots: x.length < 40 });
  };
  for (const group of mean ? found.groups : []) {
    const color = colors.get(group.run_ids[0]);
    if (group.n < 2) continue;
    const middle = drawable(group.mean, log);
    const edge = (sign) => drawable(middle.map((value, at) => (value === null || group.std[at] === null ? NaN : value + sign * toNumber(group.std[at]))), log);
    add(group[axis], [edge(1), edge(-1), smoothing ? smoothed(middle, smoothing) : middle]);
    const first = lines.length + 1;
    lines.push({ color, width: 0, dots: false, silent: true }, { color, width: 0, dots: false, silent: true }, { color, name: `mean of ${group.n}${differences(group, found.groups)}`, runs: group.run_ids, dots: group[axis].length < 40 });
    bands.push({ upper: first, lower: first + 1, color });
  }
  const inBands = new Set(mean ? found.groups.filter(({ n }) => n > 1).flatMap(({ run_ids: ids }) => ids) : []);
  for (const run of found.runs) if (!inBands.has(run.run_id)) curve(run[axis] ?? run.steps, run.values, colors.get(run.run_id), run.name);
  return { columns: joined(tables), lines, bands, ...notDrawn(found.runs.flatMap(({ values }) => values.map(toNumber)), log) };
}

// What tells a group from the others.
function differences({ params }, groups) {
  const differs = (name) => new Set(groups.map((group) => JSON.stringify(group.params[name]))).size > 1;
  const words = Object.keys(params).filter(differs).map((name) => `${name}=${text(params[name])}`);
  return words.length ? `: ${words.join(" ")}` : "";
}

// Runs of one script mostly log at the same steps: then there is nothing to bring together.
function joined(tables) {
  if (!tables.length) return [[], []];
  const [x] = tables[0];
  const isOne = tables.every(([other]) => other.length === x.length && other.every((value, at) => value === x[at]));
  return isOne ? [x, ...tables.flatMap(([, ...columns]) => columns)] : uPlot.join(tables);
}
