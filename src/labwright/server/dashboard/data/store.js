// What the pages show: one signal a run, fed by the one stream. Pages are views of this and hold no copy.

import { get, getPage, isAborted, patch, post, remove, runPath } from "./api.js";
import { project, scope, token } from "./session.js";
import { SharedStream } from "./stream.js";
import { throttle } from "./throttle.js";
import { batch, effect, signal, untracked } from "../view.js";

const GATHER_MS = 120; // events come in bursts: look once what they were about
const REFETCH_MS = 1000; // and at one run at most this often
const WAITING_MS = 3000; // and at those that wait this often
const MANY = 8; // more runs than this are fetched as one page of the list
const AT_MOST = 1000; // runs on such a page
const AHEAD = 50; // newer runs that may stand before those that are looked for

const runs = new Map(); // id → signal of the run as the server last told it
const watched = new Map(); // id → how many components show it now
const stale = new Set(); // changed while nobody looked
const fetchedAt = new Map();
let wanted = new Set();
let created = new Set();
let gathering = 0;

export const pendingAlerts = signal([]);
export const resync = signal(0); // grows when hints may have been missed: fetch again what hints tell of
export const reloads = signal(0); // 0 until the stream stands; grows when any event may have been missed
const newRunListeners = new Set();
const hintListeners = new Set();
const eventListeners = new Set();
let stream = null;

// -- reading

export const knownRun = (id) => runs.get(id);

// Takes a run into the store, or finds that it does not exist: the error is the caller's to show.
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

// A component that shows a run says so; only such runs are kept up to date beyond their status.
export function watchRun(id) {
  watched.set(id, (watched.get(id) ?? 0) + 1);
  if (stale.has(id)) want(id);
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

// `id` of what the hint is about: a run, or a conversation.
export function onHint(topic, id, listener) {
  const entry = { topic, id, listener };
  hintListeners.add(entry);
  return () => hintListeners.delete(entry);
}

// `listener` hears every event that was stored from now on.
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
const WAITING = new Set(["queued", "launching", "waiting"]); // what Slurm has not begun yet is launching
const waits = (id) => WAITING.has(runs.get(id)?.value.status);

function take(event) {
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
  if (event.type === "run.status") known.value = moved(known.value, event);
  want(event.run_id);
}

// The event tells enough to show the new status at once; the rest of the run is fetched behind it.
function moved(run, { data, time }) {
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

function want(id) {
  if (watched.has(id)) {
    wanted.add(id);
    gather();
  } else {
    stale.add(id);
  }
}

function gather() {
  if (!gathering) gathering = setTimeout(flush, GATHER_MS);
}

async function flush() {
  const due = [...wanted].filter((id) => Date.now() - (fetchedAt.get(id) ?? 0) >= REFETCH_MS);
  const fresh = [...created];
  due.forEach((id) => wanted.delete(id));
  created = new Set();
  await Promise.all([takeNew(fresh), ...due.map(refetch)]);
  gathering = 0;
  if (wanted.size || created.size) gathering = setTimeout(flush, REFETCH_MS / 4);
}

async function refetch(id) {
  fetchedAt.set(id, Date.now());
  try {
    const run = await get(runPath(id));
    if (!wanted.has(id)) putRun(run); // else it changed meanwhile: a newer answer is under way
  } catch (error) {
    if (error.status !== 404) stale.add(id); // the server is gone; asked again once it is back
  }
}

// Told of even if known: a verb's answer may have come before its event.
async function takeNew(ids) {
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

// From the list, as far as it takes: newer ones may have come before them meanwhile, and what was deleted is not there.
async function listed(ids) {
  const sought = new Set(ids);
  const found = [];
  let read = 0;
  let cursor;
  do {
    const { items, next } = await getPage("runs", { limit: Math.min(ids.length + AHEAD, AT_MOST), cursor });
    found.push(...items.filter(({ id }) => sought.has(id)));
    read += items.length;
    cursor = next;
  } while (cursor && found.length < ids.length && read < ids.length + AT_MOST);
  return found;
}

// Why a run waits changes without an event of its own: others begin and end, its sweep is paused.
async function lookAtWaiting() {
  const ids = [...watched.keys()].filter(waits);
  if (document.hidden) return;
  if (ids.length <= MANY) return ids.forEach(want);
  try {
    const { items } = await getPage("runs", { status: [...WAITING].join(","), sort: "-priority", limit: AT_MOST });
    batch(() => items.forEach((run) => waits(run.id) && putRun(run)));
  } catch (error) {
    if (!isAborted(error) && error.status) throw error; // else the server is gone: asked again once it is back
  }
}

function hinted(hint) {
  if (hint.topic === "metrics") want(hint.run_id); // its summary shows in the table
  for (const { topic, id, listener } of hintListeners) {
    if (topic === hint.topic && id === (hint.run_id ?? hint.session_id)) listener();
  }
}

const refreshAlerts = throttle(async () => {
  try {
    pendingAlerts.value = await get("alerts", { status: "pending", limit: 200 });
  } catch {
    // The connection's own state tells that the server is gone, and being back refreshes this.
  }
}, 500);

function back({ missed }) {
  if (missed) {
    runs.forEach((_, id) => stale.add(id));
    reloads.value += 1;
  }
  for (const id of watched.keys()) want(id);
  refreshAlerts();
  if (!scope.value) learnScope();
  resync.value += 1;
}

export const tryConnecting = () => stream?.tryNow();

async function learnScope() {
  try {
    const who = await get("whoami");
    scope.value = who.scope;
    project.value = who.project.split("/").at(-1);
  } catch {
    // No answer: the connection's state tells of it. What may not be done is refused with a reason anyway.
  }
}

export function startStore() {
  effect(() => {
    if (!token.value) return;
    untracked(learnScope);
    stream = untracked(() => new SharedStream({ event: take, hint: hinted, back }));
    const waiting = setInterval(lookAtWaiting, WAITING_MS);
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
