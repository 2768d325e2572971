// The progress of a run: its last step or epoch, divided by the total in its parameters.

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

// Return a number from 0 to 1, or null if unknown.
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
