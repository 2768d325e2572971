// Find runs, sweeps and plans by part of their name or id, for the palette and for mentions.

import { useEffect, useState } from "../view.js";
import { get, isAborted } from "./api.js";
import { planAddress, runAddress, sweepAddress } from "./router.js";

const LIST_LIMIT = 200;
const PAUSE_MS = 120;

// Return matching items; `query` null means no search.
export function useSearch(query, atMost) {
  const [items, setItems] = useState([]);
  useEffect(() => {
    if (query === null) return setItems([]);
    const abort = new AbortController();
    const find = () => search(query, atMost, abort.signal).then(setItems, (error) => !isAborted(error) && setItems([]));
    const timer = setTimeout(find, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [query]);
  return items;
}

async function search(query, atMost, abort) {
  const has = (...texts) => texts.some((text) => text.toLowerCase().includes(query.toLowerCase()));
  const [runs, sweeps, plans] = await Promise.all([
    get("runs", { q: query, archived: "all", limit: atMost }, abort),
    get("sweeps", { limit: LIST_LIMIT }, abort),
    get("plans", { limit: LIST_LIMIT }, abort),
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
