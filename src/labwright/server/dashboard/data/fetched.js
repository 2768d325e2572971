// Server data for pages: fetched once, cached while the page is closed, fetched again when an event may have changed
// it.

import { useEffect, useMemo, useState } from "../view.js";
import { get, getPage, isAborted } from "./api.js";
import { onEvent, reloads, resync } from "./store.js";
import { throttle } from "./throttle.js";

const PAUSE_MS = 700;
const KEPT = 60;
const kept = new Map(); // path and query → last response, so that returning to a page shows it at once

function keep(name, data) {
  kept.delete(name);
  kept.set(name, data);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
}

// Return { data, problem, refresh } for a path. `refreshOn(event)` says whether an event may have changed the data;
// `every` also refreshes every so many ms. Without a path nothing is fetched.
export function useFetched(path, query = {}, { refreshOn = () => false, every = 0, paged = false } = {}) {
  const name = path && `${path}?${JSON.stringify(query)}`;
  const [state, setState] = useState({ name, data: kept.get(name), problem: null });
  const again = `${reloads.value} ${resync.value}`;
  const refresh = useMemo(() => ({ now: () => {} }), []);

  useEffect(() => {
    if (!path || !reloads.value) return undefined;
    if (state.name !== name) setState({ name, data: kept.get(name), problem: null });
    const abort = new AbortController();
    const load = throttle(async () => {
      try {
        const data = await (paged ? getPage : get)(path, query, abort.signal);
        keep(name, data);
        setState({ name, data, problem: null });
      } catch (problem) {
        if (!isAborted(problem)) setState((now) => ({ ...now, name, problem }));
      }
    }, PAUSE_MS);
    load();
    refresh.now = load;
    const unsubscribe = onEvent((event) => refreshOn(event) && load());
    const timer = every ? setInterval(() => !document.hidden && load(), every) : 0;
    return () => {
      clearInterval(timer);
      unsubscribe();
      load.cancel();
      abort.abort();
    };
  }, [name, again]);

  const current = state.name === name ? state : { data: kept.get(name), problem: null };
  return { data: current.data, problem: current.problem, refresh: refresh.now };
}

export const eventTypes =
  (...prefixes) =>
  (event) =>
    prefixes.some((prefix) => event.type.startsWith(prefix));
