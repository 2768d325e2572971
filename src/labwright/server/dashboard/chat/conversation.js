// A conversation: turns, built from the numbered pieces of its log. The same pieces give the same turns.

import { useEffect, useRef, useState } from "../view.js";
import { get, isAborted } from "../data/api.js";
import { onHint, reloads, resync } from "../data/store.js";
import { throttle } from "../data/throttle.js";

const EMPTY = { seq: 0, turns: [], evidence: new Map() };

// Return the conversation with new pieces added; known pieces are skipped. An unchanged turn stays the same object, so
// that it is not drawn again.
function withPieces(conversation, pieces) {
  const next = { ...conversation, turns: [...conversation.turns] };
  const touched = new Set();
  for (const piece of pieces) {
    if (piece.seq <= next.seq) continue;
    next.seq = piece.seq;
    if (piece.kind === "evidence") next.evidence = new Map(next.evidence).set(piece.data.id, piece.data);
    else TAKE[piece.kind]?.(openTurn(next, piece, touched), piece);
  }
  return next.seq === conversation.seq ? conversation : next;
}

function openTurn(next, { turn: number, time }, touched) {
  let at = next.turns.findLastIndex((turn) => turn.number === number);
  if (at < 0) at = next.turns.push({ number, time, said: null, news: null, steps: [], end: null }) - 1;
  else if (!touched.has(number))
    next.turns[at] = { ...next.turns[at], steps: next.turns[at].steps.map((step) => ({ ...step })) };
  touched.add(number);
  return next.turns[at];
}

const TAKE = {
  user: (turn, { data }) => (turn.said = data),
  wake: (turn, { data }) => (turn.news = data.news),
  text: (turn, { data, seq }) => (growing(turn, "answer", seq).text += data.text),
  thinking: (turn, { data, seq }) => (growing(turn, "thinking", seq).text += data.text),
  message: whole,
  call: (turn, { data, seq }) => turn.steps.push({ kind: "call", key: seq, ...data, result: null, approval: null }),
  result: (turn, { data }) => Object.assign(callOf(turn, data.call_id) ?? {}, { result: data }),
  approval: asked,
  notice: (turn, { data, seq }) => {
    if (data.again) turn.steps = turn.steps.filter((step) => !step.isGrowing);
    turn.steps.push({ kind: "notice", key: seq, text: data.text });
  },
  plan: (turn, { data, seq }) =>
    data.status === "waiting" && turn.steps.push({ kind: "notice", key: seq, text: data.message }),
  end: (turn, { data }) => {
    turn.end = data;
    for (const step of turn.steps) step.isGrowing = false;
  },
};

// The step that the next part of a response belongs to.
function growing(turn, kind, seq) {
  const last = turn.steps.at(-1);
  if (last?.kind === kind && last.isGrowing) return last;
  turn.steps.push({ kind, key: seq, text: "", marks: [], isGrowing: true });
  return turn.steps.at(-1);
}

// A complete response replaces its parts and carries the marks of unsupported claims.
function whole(turn, { data, seq }) {
  const parts = turn.steps.filter((step) => step.isGrowing && step.kind === "answer");
  const [first, ...rest] = parts;
  turn.steps = turn.steps.filter((step) => !rest.includes(step));
  for (const step of turn.steps) step.isGrowing = false;
  if (first) Object.assign(first, { text: data.text, marks: data.marks });
  else if (data.text) turn.steps.push({ kind: "answer", key: seq, text: data.text, marks: data.marks });
}

function asked(turn, { data, seq }) {
  const call = callOf(turn, data.call_id);
  const before = turn.steps.find((step) => step.kind === "approval" && step.approval.id === data.id);
  if (call) call.approval = data;
  else if (before) before.approval = data;
  else turn.steps.push({ kind: "approval", key: seq, approval: data });
}

const callOf = (turn, id) => id && turn.steps.findLast((step) => step.kind === "call" && step.call_id === id);

// idle: the user may write. asking: an approval is pending. working: a response is being made.
export function stateOf({ turns }) {
  const last = turns.at(-1);
  if (!last || last.end) return "idle";
  return last.steps.some(({ approval }) => approval?.status === "pending") ? "asking" : "working";
}

// Read an open conversation by position. A hint of the event stream says that there is more. Neither a lost connection
// nor a restarted server loses or repeats anything.

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
    // After `reloads` the server may have another database: read everything again.
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
