// Runs, sweeps and plans by a few letters of their name or id: for the palette, and to mention them.

import { get, isAborted } from "./api.js";
import { planAddress, runAddress, sweepAddress } from "./router.js";
import { useEffect, useState } from "../view.js";

const AMONG = 200;
const PAUSE_MS = 120;

// `words` null: nothing is looked for.
export function useThings(words, atMost) {
  const [things, setThings] = useState([]);
  useEffect(() => {
    if (words === null) return setThings([]);
    const abort = new AbortController();
    const find = () =>
      findThings(words, atMost, abort.signal).then(setThings, (error) => !isAborted(error) && setThings([]));
    const timer = setTimeout(find, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [words]);
  return things;
}

async function findThings(words, atMost, abort) {
  const has = (...texts) => texts.some((text) => text.toLowerCase().includes(words.toLowerCase()));
  const [runs, sweeps, plans] = await Promise.all([
    get("runs", { q: words, archived: "all", limit: atMost }, abort),
    get("sweeps", { limit: AMONG }, abort),
    get("plans", { limit: AMONG }, abort),
  ]);
  return [
    ...runs.map((run) => ({
      id: run.id,
      href: runAddress(run.id),
      label: run.name,
      icon: "list",
      kind: `run · ${run.status}`,
    })),
    ...sweeps
      .filter(({ id, name }) => has(name, id))
      .slice(0, atMost)
      .map((sweep) => ({
        id: sweep.id,
        href: sweepAddress(sweep.id),
        label: sweep.name,
        icon: "layers",
        kind: `sweep · ${sweep.status}`,
      })),
    ...plans
      .filter(({ id, title }) => has(title, id))
      .slice(0, atMost)
      .map((plan) => ({
        id: plan.id,
        href: planAddress(plan.id),
        label: plan.title,
        icon: "workflow",
        kind: `plan · ${plan.status}`,
      })),
  ];
}
