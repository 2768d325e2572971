// The rows of the runs page. Rows keep their order until the user changes it.

import { batch, signal, untracked } from "../view.js";
import { getPage, isAborted } from "../data/api.js";
import { knownRun, onNewRuns, putRun } from "../data/store.js";
import {
  configText,
  groupLabel,
  groupOf,
  GROUPS,
  metricsOf,
  SERVER_SORTS,
  sharedParams,
  sorted,
} from "../work/run_columns.js";

const FIRST_PAGE = 100;
const NEXT_PAGE = 500;
const WHOLE_PAGE = 1000;
const AT_MOST = 30_000; // rows to sort or group in the browser
const METRIC_COLUMNS = 3;
const RESULT_METRIC = /loss|acc|reward|score|return|f1|auc|ppl|bleu|error/i; // metrics that people compare

export const FILTERS = {
  all: { label: "All" },
  active: { label: "Active", statuses: ["ready", "queued", "launching", "waiting", "running"] },
  finished: { label: "Finished", statuses: ["finished"] },
  failed: { label: "Failed", statuses: ["failed", "lost"] },
  stopped: { label: "Stopped", statuses: ["stopped"] },
  archived: { label: "Archived" },
};

export const rows = signal([]); // ids
export const waitingRows = signal([]); // new runs that are not inserted yet, because rows would move under the pointer
export const state = signal("loading"); // loading | ready | failed
export const problem = signal(null);
export const commonColumns = signal([]); // metrics that most runs have
export const knownColumns = signal({ metrics: [], params: [] });
export const hasMore = signal(false);
export const closedGroups = signal(new Set());

let view = viewOf(new URLSearchParams());
let cursor = null;
let abort = null;
let loadingMore = false;
let isOutdated = false; // the last request failed

// Parse the view from the address. Unknown values are ignored.
export function viewOf(query) {
  const show = query.get("show");
  const group = query.get("group") ?? "";
  return {
    q: query.get("q") ?? "",
    tag: query.get("tag") ?? "",
    sweep: query.get("sweep") ?? "",
    show: Object.hasOwn(FILTERS, show) ? show : "all",
    sort: query.get("sort") || "-created_at",
    group: Object.hasOwn(GROUPS, group) ? group : "",
    cols: query.has("cols") ? query.get("cols").split("\n").filter(Boolean) : null,
  };
}

const queryOf = ({ q, tag, sweep, show, sort }) => ({
  q,
  tag,
  sweep_id: sweep,
  status: FILTERS[show].statuses?.join(","),
  archived: show === "archived" ? "true" : "false",
  sort: SERVER_SORTS.has(sort) ? sort : undefined,
});

// Sorting by a metric or parameter, and grouping, need all runs.
const needsAll = ({ sort, group }) => Boolean(group) || !SERVER_SORTS.has(sort);

export async function loadRows(requested) {
  view = requested;
  abort?.abort();
  abort = new AbortController();
  const mine = abort.signal;
  try {
    const whole = needsAll(requested);
    let page = await getPage("runs", { ...queryOf(requested), limit: whole ? WHOLE_PAGE : FIRST_PAGE }, mine);
    let found = page.items;
    while (whole && page.next && found.length < AT_MOST) {
      page = await getPage("runs", { ...queryOf(requested), limit: WHOLE_PAGE, cursor: page.next }, mine);
      found = found.concat(page.items);
    }
    show(whole ? sorted(found, requested.sort) : found, page.next);
  } catch (error) {
    if (isAborted(error)) return;
    problem.value = error;
    isOutdated = true;
    if (state.value === "loading") state.value = "failed"; // otherwise keep the old rows
  }
}

// Load again after a reconnect, if the last request failed.
export function retryRows() {
  if (isOutdated) loadRows(view);
}

function show(found, next) {
  isOutdated = false;
  batch(() => {
    found.forEach(putRun);
    rows.value = found.map((run) => run.id);
    waitingRows.value = [];
    commonColumns.value = commonMetrics(found);
    cursor = next;
    hasMore.value = Boolean(next);
    noticeColumns(found);
    state.value = "ready";
    problem.value = null;
  });
}

export async function loadMoreRows() {
  if (!cursor || loadingMore || needsAll(view)) return;
  loadingMore = true;
  const { signal: mine } = abort;
  try {
    const page = await getPage("runs", { ...queryOf(view), limit: NEXT_PAGE, cursor }, mine);
    batch(() => {
      page.items.forEach(putRun);
      const there = new Set(rows.value);
      rows.value = [...rows.value, ...page.items.map((run) => run.id).filter((id) => !there.has(id))];
      cursor = page.next;
      hasMore.value = Boolean(cursor);
      noticeColumns(page.items);
    });
  } catch (error) {
    if (!isAborted(error)) problem.value = error;
  } finally {
    loadingMore = false;
  }
}

// Pick the metrics that most runs have, results first.
function commonMetrics(found) {
  const counts = new Map();
  for (const run of found.slice(0, FIRST_PAGE))
    for (const key of metricsOf(run)) counts.set(key, (counts.get(key) ?? 0) + 1);
  const weight = (key) => counts.get(key) * (RESULT_METRIC.test(key) ? 2 : 1);
  const keys = [...counts.keys()].sort((a, b) => weight(b) - weight(a));
  return keys.slice(0, METRIC_COLUMNS).map((key) => `m:${key}`);
}

function noticeColumns(found) {
  const { metrics, params } = knownColumns.value;
  const allMetrics = new Set(metrics);
  const allParams = new Set(params);
  for (const run of found) {
    metricsOf(run).forEach((key) => allMetrics.add(key));
    Object.keys(run.params).forEach((key) => allParams.add(key));
    if (run.seed !== null) allParams.add("seed");
  }
  if (allMetrics.size > metrics.length || allParams.size > params.length) {
    knownColumns.value = { metrics: [...allMetrics].sort(), params: [...allParams].sort() };
  }
}

// Add columns for new metrics without moving the existing ones.
export function noticeMetrics(run) {
  noticeColumns([run]);
  if (commonColumns.value.length >= METRIC_COLUMNS) return;
  const fresh = metricsOf(run)
    .map((key) => `m:${key}`)
    .filter((column) => !commonColumns.value.includes(column));
  if (fresh.length) commonColumns.value = [...commonColumns.value, ...fresh].slice(0, METRIC_COLUMNS);
}

// Return the drawn rows: runs, or group heads followed by their runs.
export function itemsOf(ids, by, sweepNames, closed) {
  if (!by) return ids.map((id) => ({ id }));
  const groups = new Map();
  for (const id of ids) {
    const run = untracked(() => knownRun(id)?.value);
    if (!run) continue;
    const key = groupOf(run, by);
    if (!groups.has(key)) groups.set(key, { key, label: groupLabel(run, by, sweepNames), first: run, ids: [] });
    groups.get(key).ids.push(id);
  }
  if (by === "config") putDifferencesFirst([...groups.values()]);
  return [...groups.values()].flatMap((group) => [
    { group },
    ...(closed.has(group.key) ? [] : group.ids.map((id) => ({ id, under: group.label }))),
  ]);
}

// Put the differing parameters first, so that heads differ even if they are cut off.
function putDifferencesFirst(groups) {
  const shared = sharedParams(groups.map(({ first }) => first));
  for (const group of groups) group.head = configText(group.first, shared);
}

export function toggleGroup(key) {
  const closed = new Set(closedGroups.value);
  if (!closed.delete(key)) closed.add(key);
  closedGroups.value = closed;
}

const matchesView = (run) => {
  const { statuses } = FILTERS[view.show];
  const q = view.q.toLowerCase();
  return (
    run.archived === (view.show === "archived") &&
    (!statuses || statuses.includes(run.status)) &&
    (!view.tag || run.tags.includes(view.tag)) &&
    (!view.sweep || run.sweep_id === view.sweep) &&
    (!q || run.id === view.q || `${run.name}\n${run.command}`.toLowerCase().includes(q))
  );
};

// Add new runs. `mayMove()` says whether rows may move now.
export function followNewRuns(mayMove) {
  return onNewRuns((found) => {
    const there = new Set([...rows.value, ...waitingRows.value]);
    const fresh = found.filter((run) => matchesView(run) && !there.has(run.id));
    fresh.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
    waitingRows.value = [...fresh.map((run) => run.id), ...waitingRows.value];
    if (mayMove()) showWaitingRows();
  });
}

export function showWaitingRows() {
  batch(() => {
    rows.value = [...waitingRows.value, ...rows.value];
    waitingRows.value = [];
  });
}
