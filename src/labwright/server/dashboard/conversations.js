// Conversations that are open here, read by position: a hint of the one stream says that there is more, and what is there
// already is never taken twice. So neither a lost connection nor a restarted server loses or doubles anything.

import { get, isAborted } from "./api.js";
import { EMPTY, withPieces } from "./conversation.js";
import { onHint, reloads, resync } from "./store.js";
import { throttle } from "./throttle.js";
import { useEffect, useRef, useState } from "./ui.js";

const PAUSE_MS = 60;
const PAGE = 2000;

export const sessionPath = (id, rest = "") => `sessions/${encodeURIComponent(id)}${rest}`;

export function useConversation(id) {
  const [state, setState] = useState({ id, conversation: null, problem: null });
  const kept = useRef({});
  const [loads, again] = [reloads.value, resync.value];

  useEffect(() => {
    if (!id || !loads) return undefined;
    const abort = new AbortController();
    // After `reloads` another database may be behind the server: begun anew, and shown when it is whole.
    if (kept.current.name !== `${id} ${loads}`) kept.current = { name: `${id} ${loads}`, known: EMPTY };
    const load = throttle(async () => {
      try {
        const known = await upToDate(id, kept.current.known, abort.signal);
        kept.current.known = known;
        setState({ id, conversation: known, problem: null });
      } catch (problem) {
        if (!isAborted(problem)) setState((now) => ({ ...now, id, problem }));
      }
    }, PAUSE_MS);
    load();
    const unsubscribe = onHint("chat", id, load);
    return () => {
      unsubscribe();
      load.cancel();
      abort.abort();
    };
  }, [id, loads, again]);
  return state.id === id ? state : { conversation: null, problem: null };
}

async function upToDate(id, known, abort) {
  for (;;) {
    const pieces = await get(sessionPath(id, "/pieces"), { after: known.seq, limit: PAGE }, abort);
    known = withPieces(known, pieces);
    if (pieces.length < PAGE) return known;
  }
}
