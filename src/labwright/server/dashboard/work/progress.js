// How far a run is, where it tells: the last step or epoch against the total that its parameters name.

const TOTALS = [
  [
    ["max_steps", "total_steps", "num_steps", "steps", "iterations", "max_iters", "num_train_steps"],
    (run) => lastStep(run),
  ],
  [
    ["epochs", "num_epochs", "max_epochs", "num_train_epochs"],
    (run) => run.summary.epoch?.last ?? run.summary["train/epoch"]?.last,
  ],
];

function lastStep(run) {
  const steps = Object.entries(run.summary)
    .filter(([key]) => !key.startsWith("system/"))
    .map(([, { step }]) => step);
  return steps.length ? Math.max(...steps) : undefined;
}

// Between 0 and 1, or null where it cannot be told.
export function progressOf(run) {
  const logged = run.summary.progress?.last;
  if (typeof logged === "number") return Math.max(0, Math.min(1, logged > 1 ? logged / 100 : logged));
  for (const [names, doneOf] of TOTALS) {
    const total = names.map((name) => run.params[name]).find((value) => typeof value === "number" && value > 0);
    const done = total && doneOf(run);
    if (typeof done === "number") return Math.max(0, Math.min(1, done / total));
  }
  return null;
}
