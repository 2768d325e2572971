// The client's state: one signal per run, updated by the event stream. Pages read it and keep no copies.

import { batch, effect, signal, untracked } from "../view.js";
import { get, getPage, isAborted, patch, post, remove, runPath } from "./api.js";
import { project, scope, token } from "./session.js";
import { SharedStream } from "./stream.js";
import { throttle } from "./throttle.js";

const GATHER_MS = 120; // collect bursts of events before fetching
const REFETCH_MS = 1000; // fetch one run at most this often
const WAITING_MS = 3000; // poll waiting runs this often
const MANY = 8; // fetch more runs than this with one list request
const AT_MOST = 1000; // runs in one list request
const AHEAD = 50; // newer runs that may precede the requested ones in the list

const runs = new Map(); // id → signal with the last known run
const watched = new Map(); // id → number of components that show it
const stale = new Set(); // changed while not shown
const fetchedAt = new Map();
let due = new Set();
let created = new Set();
let gathering = 0;

export const pendingAlerts = signal([]);
export const resync = signal(0); // increases when hints may have been missed
export const reloads = signal(0); // 0 until connected; increases when events may have been missed
const newRunListeners = new Set();
const hintListeners = new Set();
const eventListeners = new Set();
let stream = null;

// -- reading

export const knownRun = (id) => runs.get(id);

// Fetch a run into the store. The caller handles errors.
export async function loadRun(id, abort) {
  const run = await get(runPath(id), {}, abort);
  fetchedAt.set(run.id, Date.now());
  return putRun(run);
}

export function putRun(run) {
  const known = runs.get(run.id);
  if (!known) runs.set(run.id, signal(run));
  else known.value = run;
  stale.delete(run.id);
  return runs.get(run.id);
}

// Keep a run up to date while a component shows it. Return a function that stops this.
export function watchRun(id) {
  watched.set(id, (watched.get(id) ?? 0) + 1);
  if (stale.has(id)) requestUpdate(id);
  return () => {
    const left = watched.get(id) - 1;
    if (left) watched.set(id, left);
    else watched.delete(id);
  };
}

export function onNewRuns(listener) {
  newRunListeners.add(listener);
  return () => newRunListeners.delete(listener);
}

// Call `listener` on hints about a run or a conversation.
export function onHint(topic, id, listener) {
  const entry = { topic, id, listener };
  hintListeners.add(entry);
  return () => hintListeners.delete(entry);
}

// Call `listener` on every new event.
export function onEvent(listener) {
  eventListeners.add(listener);
  return () => eventListeners.delete(listener);
}

// -- verbs

export async function actOnRun(id, verb, body = verb === "rerun" ? {} : undefined) {
  const run = await post(runPath(id, `/${verb}`), body);
  return putRun(run).value;
}

export const changeRun = async (id, changes) => putRun(await patch(runPath(id), changes)).value;
export const deleteRun = (id) => remove(runPath(id));

export async function answerAlert(alert, choice) {
  await post(`alerts/${encodeURIComponent(alert.id)}/respond`, { choice });
  await refreshAlerts();
}

// -- the feed

const TERMINAL = new Set(["finished", "failed", "stopped", "lost"]);
export const isTerminal = (run) => TERMINAL.has(run.status);
const WAITING = new Set(["queued", "launching", "waiting"]); // jobs in Slurm's queue are launching
const waits = (id) => WAITING.has(runs.get(id)?.value.status);

function onStreamEvent(event) {
  eventListeners.forEach((listener) => listener(event));
  if (event.type.startsWith("alert.")) refreshAlerts();
  if (!event.run_id) return;
  if (event.type === "run.created") created.add(event.run_id);
  else if (event.type === "run.deleted") forgetRun(event.run_id);
  else if (event.type.startsWith("run.")) changed(event);
  gather();
}

function changed(event) {
  const known = runs.get(event.run_id);
  if (!known) return;
  if (event.type === "run.status") known.value = withStatus(known.value, event);
  requestUpdate(event.run_id);
}

// Apply a status event at once; the full run is fetched later.
function withStatus(run, { data, time }) {
  const status = data.to;
  return {
    ...run,
    status,
    status_reason: data.reason ?? "",
    exit_code: data.exit_code ?? run.exit_code,
    signal: data.signal ?? run.signal,
    started_at: run.started_at ?? (status === "running" ? time : null),
    ended_at: run.ended_at ?? (TERMINAL.has(status) ? time : null),
  };
}

function forgetRun(id) {
  const known = runs.get(id);
  if (known) known.value = { ...known.value, deleted: true };
}

function requestUpdate(id) {
  if (watched.has(id)) {
    due.add(id);
    gather();
  } else {
    stale.add(id);
  }
}

function gather() {
  if (!gathering) gathering = setTimeout(flush, GATHER_MS);
}

async function flush() {
  const ready = [...due].filter((id) => Date.now() - (fetchedAt.get(id) ?? 0) >= REFETCH_MS);
  const fresh = [...created];
  ready.forEach((id) => due.delete(id));
  created = new Set();
  await Promise.all([addNewRuns(fresh), ...ready.map(refetch)]);
  gathering = 0;
  if (due.size || created.size) gathering = setTimeout(flush, REFETCH_MS / 4);
}

async function refetch(id) {
  fetchedAt.set(id, Date.now());
  try {
    const run = await get(runPath(id));
    if (!due.has(id)) putRun(run); // otherwise a newer request is pending
  } catch (error) {
    if (error.status !== 404) stale.add(id); // the server is unreachable; retried on reconnect
  }
}

// Notify even about known runs: the response of a call may arrive before its event.
async function addNewRuns(ids) {
  if (!ids.length) return;
  try {
    const unknown = ids.filter((id) => !runs.has(id));
    const found = await (unknown.length > MANY ? listed(unknown) : each(unknown));
    batch(() => found.forEach(putRun));
    const fresh = ids.filter((id) => runs.has(id)).map((id) => runs.get(id).value);
    newRunListeners.forEach((listener) => listener(fresh));
  } catch (error) {
    if (!isAborted(error)) ids.forEach((id) => created.add(id));
  }
}

const each = async (ids) => (await Promise.all(ids.map((id) => get(runPath(id)).catch(() => null)))).filter(Boolean);

// Fetch runs with list requests. Newer runs may precede them, and deleted runs are missing.
async function listed(ids) {
  const requested = new Set(ids);
  const found = [];
  let read = 0;
  let cursor;
  do {
    const { items, next } = await getPage("runs", { limit: Math.min(ids.length + AHEAD, AT_MOST), cursor });
    found.push(...items.filter(({ id }) => requested.has(id)));
    read += items.length;
    cursor = next;
  } while (cursor && found.length < ids.length && read < ids.length + AT_MOST);
  return found;
}

// Poll waiting runs: the reason why a run waits changes without an event.
async function pollWaiting() {
  const ids = [...watched.keys()].filter(waits);
  if (document.hidden) return;
  if (ids.length <= MANY) return ids.forEach(requestUpdate);
  try {
    const { items } = await getPage("runs", { status: [...WAITING].join(","), sort: "-priority", limit: AT_MOST });
    batch(() => items.forEach((run) => waits(run.id) && putRun(run)));
  } catch (error) {
    if (!isAborted(error) && error.status) throw error; // otherwise the server is unreachable; retried on reconnect
  }
}

function onHintReceived(hint) {
  if (hint.topic === "metrics") requestUpdate(hint.run_id); // the table shows its summary
  for (const { topic, id, listener } of hintListeners) {
    if (topic === hint.topic && id === (hint.run_id ?? hint.session_id)) listener();
  }
}

const refreshAlerts = throttle(async () => {
  try {
    pendingAlerts.value = await get("alerts", { status: "pending", limit: 200 });
  } catch {
    // The banner shows that the server is unreachable; reconnecting refreshes this.
  }
}, 500);

function back({ missed }) {
  if (missed) {
    runs.forEach((_, id) => stale.add(id));
    reloads.value += 1;
  }
  for (const id of watched.keys()) requestUpdate(id);
  refreshAlerts();
  if (!scope.value) loadScope();
  resync.value += 1;
}

export const reconnectNow = () => stream?.tryNow();

async function loadScope() {
  try {
    const me = await get("whoami");
    scope.value = me.scope;
    project.value = me.project.split("/").at(-1);
  } catch {
    // The banner shows that the server is unreachable. The server refuses forbidden calls in any case.
  }
}

export function startStore() {
  effect(() => {
    if (!token.value) return;
    untracked(loadScope);
    stream = untracked(() => new SharedStream({ event: onStreamEvent, hint: onHintReceived, back }));
    const waiting = setInterval(pollWaiting, WAITING_MS);
    return () => {
      clearInterval(waiting);
      scope.value = project.value = "";
      stream.close();
      stream = null;
      runs.clear();
      reloads.value = 0;
      pendingAlerts.value = [];
    };
  });
}
