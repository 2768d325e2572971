// The rows of the runs page: which runs, in which order. Rows stay where they are until somebody asks for a new order.

import { getPage, isAborted } from "./api.js";
import { onNewRuns, putRun } from "./store.js";
import { batch, signal } from "./ui.js";

const FIRST_PAGE = 100;
const NEXT_PAGE = 500;
const METRIC_COLUMNS = 3;

export const SHOWN = {
  all: { label: "All" },
  active: { label: "Active", statuses: ["ready", "queued", "launching", "waiting", "running"] },
  finished: { label: "Finished", statuses: ["finished"] },
  failed: { label: "Failed", statuses: ["failed", "lost"] },
  stopped: { label: "Stopped", statuses: ["stopped"] },
  archived: { label: "Archived" },
};

export const rows = signal([]); // ids
export const waitingRows = signal([]); // new runs that would move the rows under the pointer
export const state = signal("loading"); // loading | ready | failed
export const problem = signal(null);
export const columns = signal([]); // metric keys
export const hasMore = signal(false);

let filter = { q: "", show: "all" };
let cursor = null;
let abort = null;
let loadingMore = false;

const queryOf = ({ q, show }) => ({
  q,
  status: SHOWN[show]?.statuses?.join(","),
  archived: show === "archived" ? "true" : "false",
});

export async function loadRows(wanted) {
  filter = wanted;
  abort?.abort();
  abort = new AbortController();
  try {
    const page = await getPage("runs", { ...queryOf(filter), limit: FIRST_PAGE }, abort.signal);
    batch(() => {
      page.items.forEach(putRun);
      rows.value = page.items.map((run) => run.id);
      waitingRows.value = [];
      columns.value = commonMetrics(page.items);
      took(page);
      state.value = "ready";
      problem.value = null;
    });
  } catch (error) {
    if (isAborted(error)) return;
    problem.value = error;
    if (state.value === "loading") state.value = "failed"; // rows that are there stay readable
  }
}

export async function loadMoreRows() {
  if (!cursor || loadingMore) return;
  loadingMore = true;
  const { signal: mine } = abort;
  try {
    const page = await getPage("runs", { ...queryOf(filter), limit: NEXT_PAGE, cursor }, mine);
    batch(() => {
      page.items.forEach(putRun);
      const there = new Set(rows.value);
      rows.value = [...rows.value, ...page.items.map((run) => run.id).filter((id) => !there.has(id))];
      took(page);
    });
  } catch (error) {
    if (!isAborted(error)) problem.value = error;
  } finally {
    loadingMore = false;
  }
}

function took(page) {
  cursor = page.next;
  hasMore.value = Boolean(cursor);
  page.items.forEach(noticeMetrics);
}

const metricsOf = (run) => Object.keys(run.summary).filter((key) => !key.startsWith("system/"));

// What most of these runs have in common is what they are compared by.
function commonMetrics(found) {
  const counts = new Map();
  for (const key of found.flatMap(metricsOf)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, METRIC_COLUMNS);
}

// Columns are added as keys show up and not swapped, for the same reason as rows.
export function noticeMetrics(run) {
  if (columns.value.length >= METRIC_COLUMNS) return;
  const fresh = metricsOf(run).filter((key) => !columns.value.includes(key));
  if (fresh.length) columns.value = [...columns.value, ...fresh].slice(0, METRIC_COLUMNS);
}

const isWanted = (run) => {
  const { statuses } = SHOWN[filter.show] ?? {};
  const q = filter.q.toLowerCase();
  return (
    run.archived === (filter.show === "archived") &&
    (!statuses || statuses.includes(run.status)) &&
    (!q || run.id === filter.q || `${run.name}\n${run.command}`.toLowerCase().includes(q))
  );
};

// `mayMove()` says whether rows may move now: at the top of the list, with no pointer on it.
export function followNewRuns(mayMove) {
  return onNewRuns((found) => {
    const there = new Set([...rows.value, ...waitingRows.value]);
    const fresh = found.filter((run) => isWanted(run) && !there.has(run.id));
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
