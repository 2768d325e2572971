// Columns of the runs table, for showing, sorting and grouping. `m:loss` is a metric, `p:lr` a parameter.

import { toNumber } from "../format.js";

const STATUS_ORDER = ["running", "launching", "waiting", "queued", "ready", "failed", "lost", "stopped", "finished"];
export const SERVER_SORTS = new Set(["created_at", "-created_at", "ended_at", "-ended_at", "name", "-name"]);
export const GROUPS = { "": "No groups", sweep: "Sweep", config: "Configuration", tag: "Tag", status: "Status" };
const REHEARSAL = "rehearsal"; // tag of a plan's trial runs
const OWN_METRICS = (key) => !key.startsWith("system/");

export const isMetric = (column) => column.startsWith("m:");
export const nameOf = (column) => column.slice(2);
export const metricsOf = (run) => Object.keys(run.summary).filter(OWN_METRICS);

export function valueOf(run, column) {
  if (isMetric(column)) return own(run.summary, nameOf(column))?.last;
  if (column.startsWith("p:"))
    return nameOf(column) === "seed" && run.seed !== null ? run.seed : own(run.params, nameOf(column));
  if (column === "duration") return secondsOf(run);
  if (column === "status") return STATUS_ORDER.indexOf(run.status);
  return run[column];
}

// Own properties only: a script may log a metric named `constructor`.
const own = (values, name) => (Object.hasOwn(values, name) ? values[name] : undefined);

function secondsOf(run) {
  if (!run.started_at) return undefined;
  return ((run.ended_at ? Date.parse(run.ended_at) : Date.now()) - Date.parse(run.started_at)) / 1000;
}

// Sort by one column. Missing values and NaN come last in both directions.
export function sorted(runs, sort) {
  const down = sort.startsWith("-");
  const column = down ? sort.slice(1) : sort;
  const keyed = runs.map((run) => [comparable(valueOf(run, column)), run]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order =
      typeof a === "number" && typeof b === "number"
        ? a - b
        : String(a) < String(b)
          ? -1
          : String(a) > String(b)
            ? 1
            : 0;
    return down ? -order : order;
  });
  return keyed.map(([, run]) => run);
}

function comparable(value) {
  if (value === undefined || value === null || value === "" || value === "NaN") return null;
  if (value === "Infinity" || value === "-Infinity") return toNumber(value);
  return typeof value === "object" ? JSON.stringify(value) : value;
}

export function groupOf(run, by) {
  if (by === "sweep") return run.sweep_id ?? "";
  if (by === "tag") return [...run.tags].sort().join(", ");
  if (by === "config") return run.config_hash ?? withoutSeed(run.command);
  return run.status;
}

export function groupLabel(run, by, sweepNames) {
  if (by === "sweep") return run.sweep_id ? (sweepNames.get(run.sweep_id) ?? run.sweep_id) : "No sweep";
  if (by === "tag") return run.tags.length ? [...run.tags].sort().join(", ") : "No tag";
  if (by === "config") return configText(run) || withoutSeed(run.command);
  return run.status;
}

// Return the names of parameters with the same value in all runs.
export function sharedParams(runs) {
  const [first = {}, ...others] = runs.map(({ params }) => params);
  return new Set(
    Object.keys(first).filter((name) =>
      others.every((params) => JSON.stringify(params[name]) === JSON.stringify(first[name])),
    ),
  );
}

// The seed is not part of the configuration.
export const withoutSeed = (command) => command.replace(/seed[=\s]+\d+/gi, "seed");

// Parameters as text; names in `last` come last.
export const configText = (run, last = new Set()) =>
  Object.entries(run.params)
    .filter(([name]) => name !== "seed")
    .sort(([one], [other]) => last.has(one) - last.has(other))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");

// Return mean, standard deviation and n of the finite last values, without rehearsals. The mean is clamped to the
// range, so that rounding does not make equal values deviate.
export function spreadOf(runs, column) {
  const values = runs
    .filter(({ tags }) => !tags.includes(REHEARSAL))
    .map((run) => toNumber(valueOf(run, column)))
    .filter(Number.isFinite);
  if (!values.length) return null;
  const [least, greatest] = [Math.min, Math.max].map((pick) => values.reduce((one, other) => pick(one, other)));
  const mean = Math.max(least, Math.min(greatest, values.reduce((sum, value) => sum + value, 0) / values.length));
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, std: values.length > 1 ? Math.sqrt(square / (values.length - 1)) : 0, n: values.length };
}
