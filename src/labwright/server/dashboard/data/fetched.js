// What a page shows beside runs: fetched once, kept while the page is away, fetched again when an event tells that it may
// have changed.

import { get, getPage, isAborted } from "./api.js";
import { onEvent, reloads, resync } from "./store.js";
import { throttle } from "./throttle.js";
import { useEffect, useMemo, useState } from "../view.js";

const PAUSE_MS = 700;
const KEPT = 60;
const kept = new Map(); // address → what it last answered, so that coming back to a page shows it at once

function keep(name, data) {
  kept.delete(name);
  kept.set(name, data);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
}

// `wakes(event)` says whether an event may have changed the answer; `every` fetches again after so many ms as well.
// No path: nothing is fetched.
export function useFetched(path, query = {}, { wakes = () => false, every = 0, paged = false } = {}) {
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
    const unsubscribe = onEvent((event) => wakes(event) && load());
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

export const wakesOn =
  (...prefixes) =>
  (event) =>
    prefixes.some((prefix) => event.type.startsWith(prefix));
