// The rows of the runs table.

import { number, text } from "../format.js";
import { html, untracked, useEffect, useLayoutEffect, useMemo, useRef } from "../view.js";
import { runAddress, setQuery } from "../data/router.js";
import { isTerminal, knownRun, watchRun } from "../data/store.js";
import { Icon } from "../ui/icon.js";
import { Meter, StatusBar } from "../ui/meter.js";
import { Ago, Duration } from "../ui/time.js";
import { Sparkline } from "../charts/sparkline.js";
import { progressOf } from "../work/progress.js";
import { isMetric, nameOf, spreadOf, valueOf } from "../work/run_columns.js";
import { useNames } from "../work/run_link.js";
import { reasonOf, Status } from "../work/status.js";
import * as list from "./run_list.js";
import { tick, ticked } from "./selection_bar.js";

const NEW_MS = 3000;

export function Head({ columns, sort, ids }) {
  const all = ids.length > 0 && ids.every((id) => ticked.value.has(id));
  return html`<div class="row row-head" role="row">
    <span role="columnheader">
      <input type="checkbox" aria-label="Select all runs shown" checked=${all} onChange=${() => tick(ids, !all)} />
    </span>
    <${Sorter} name="status" label="Status" sort=${sort} />
    <${Sorter} name="name" label="Name" sort=${sort} />
    <span role="columnheader" class="cell-trend">
      ${columns.some(isMetric) ? "Trend" : ""}
    </span>
    ${columns.map(
      (column) => html`<${Sorter} key=${column} name=${column} label=${nameOf(column)} sort=${sort} isNumber />`,
    )}
    <${Sorter} name="duration" label="Duration" sort=${sort} isNumber />
    <${Sorter} name="created_at" label="Created" sort=${sort} isNumber />
    <span role="columnheader">Result</span>
  </div>`;
}

// First click: ascending; second: descending; third: newest first. For dates, descending comes first.
function Sorter({ name, label, sort, isNumber }) {
  const first = name === "created_at" ? `-${name}` : name;
  const second = first === name ? `-${name}` : name;
  const next = sort === first ? second : sort === second && name !== "created_at" ? "" : first;
  const direction = sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none";
  return html`<span role="columnheader" aria-sort=${direction} class=${isNumber ? "num" : ""}>
    <button
      class="sorter"
      title="Sort by ${label}"
      onClick=${() => setQuery({ sort: next === "-created_at" ? "" : next })}
    >
      <span>${label}</span>
      ${
        direction !== "none" &&
        html`<${Icon} name=${direction === "ascending" ? "arrow-up" : "arrow-down"} size="12" />`
      }
    </button>
  </span>`;
}

export function GroupRow({ group, index, columns, isClosed, selected }) {
  const runs = useMemo(() => untracked(() => group.ids.map((id) => knownRun(id).value)), [group]);
  const progress = useMemo(() => tally(runs), [runs]);
  const ref = useRef(null);
  useFocus(ref, selected, "button");
  const all = group.ids.every((id) => ticked.value.has(id));
  return html`<div
    ref=${ref}
    class="row row-group ${selected ? "row-selected" : ""}"
    role="row"
    aria-rowindex=${index + 2}
  >
    <span role="cell" class="cell-tick">
      <input
        type="checkbox"
        aria-label="Select the group ${group.label}"
        checked=${all}
        onChange=${() => tick(group.ids, !all)}
      />
    </span>
    <span role="cell" class="cell-status">
      <${StatusBar} progress=${progress} />
    </span>
    <span role="cell" class="cell-name">
      <button
        class="bare group-toggle"
        aria-expanded=${String(!isClosed)}
        onClick=${() => list.toggleGroup(group.key)}
      >
        <${Icon} name=${isClosed ? "chevron-right" : "chevron-down"} size="14" />
        <span title=${group.label}>${group.head || group.label}</span>
      </button>
      <span class="muted num">${group.ids.length}</span>
    </span>
    <span role="cell" class="cell-trend"></span>
    ${columns.map((column) => html`<${Spread} key=${column} runs=${runs} column=${column} />`)}
    <span role="cell" class="cell-duration"></span>
    <span role="cell" class="cell-created"></span>
    <span role="cell" class="cell-result"></span>
  </div>`;
}

function tally(runs) {
  const progress = { total: runs.length };
  for (const { status } of runs) progress[status] = (progress[status] ?? 0) + 1;
  return progress;
}

function Spread({ runs, column }) {
  const spread = isMetric(column) ? spreadOf(runs, column) : null;
  if (!spread) return html`<span role="cell" class="cell-metric"></span>`;
  const { mean, std, n } = spread;
  return html`<span
    role="cell"
    class="num cell-metric"
    data-key=${nameOf(column)}
    title="mean ${mean}, std ${std}, n = ${n}"
  >
    ${number(mean)}
    ${n > 1 && html`<span class="muted small"> ±${number(Number(std.toPrecision(2)))}</span>`}
  </span>`;
}

export function RunRow({ id, under, index, columns, selected, onOpen, onTick }) {
  const ref = useRef(null);
  const run = knownRun(id)?.value;
  useEffect(() => watchRun(id), [id]);
  useGlow(ref, run);
  useEffect(() => {
    if (run) list.noticeMetrics(run);
  }, [run?.summary]);
  useFocus(ref, selected, "a");
  const reason = run ? reasonOf(run) : "";
  const named = useNames(reason);
  if (!run) return null;

  const isTicked = ticked.value.has(id);
  const done = isTerminal(run) ? null : progressOf(run);
  const metric = columns.find(isMetric);
  const marks = [selected && "row-selected", isTicked && "row-ticked", run.deleted && "row-deleted"]
    .filter(Boolean)
    .join(" ");
  return html`<div ref=${ref} class="row ${marks}" role="row" aria-rowindex=${index + 2}>
    <span role="cell" class="cell-tick">
      <input
        type="checkbox"
        aria-label="Select ${run.name}"
        checked=${isTicked}
        onClick=${(event) => onTick(id, event.currentTarget.checked, event.shiftKey)}
      />
    </span>
    <span role="cell" class="cell-status">
      <${Status} run=${run} />
    </span>
    <span role="cell" class="cell-name">
      <a href=${runAddress(id)} onClick=${() => onOpen(id)} title=${run.name}>
        ${restOf(run.name, under)}
      </a>
      ${done !== null && html`<${Meter} value=${done} label="Progress" />`}
      <span class="tags">
        ${run.tags.map(
          (tag) =>
            html`<span class="tag" key=${tag}>
              ${tag}
            </span>`,
        )}
      </span>
    </span>
    <span role="cell" class="cell-trend">
      ${metric && html`<${Sparkline} run=${run} metric=${nameOf(metric)} />`}
    </span>
    ${columns.map((column) => html`<${Value} key=${column} run=${run} column=${column} />`)}
    <span role="cell" class="num cell-duration">
      <${Duration} run=${run} />
    </span>
    <span role="cell" class="num muted cell-created">
      <${Ago} time=${run.created_at} />
    </span>
    <span role="cell" class="muted cell-result" title=${reason}>
      ${run.deleted ? "deleted" : named}
    </span>
  </div>`;
}

// Focus the selected row, unless a part of it has the focus. In a layout effect: focusing selects the row, and later
// two rows could select each other forever.
function useFocus(ref, selected, target) {
  useLayoutEffect(() => {
    if (selected && ref.current && !ref.current.contains(document.activeElement))
      ref.current.querySelector(target).focus({ preventScroll: true });
  }, [selected]);
}

// Drop the part of the name that the group head already shows.
const restOf = (name, under) => (under && name.startsWith(`${under} `) ? name.slice(under.length + 1) : name);

function Value({ run, column }) {
  const value = valueOf(run, column);
  const shown = typeof value === "number" || isMetric(column) ? number(value) : value === undefined ? "" : text(value);
  return html`<span
    role="cell"
    class="num cell-metric"
    data-key=${nameOf(column)}
    title=${value === undefined ? undefined : `${nameOf(column)} = ${text(value)}`}
  >
    ${shown}
  </span>`;
}

// Highlight a row when its status changes, and a new row once.
function useGlow(ref, run) {
  const status = run?.status;
  const isNew = run && Date.now() - Date.parse(run.created_at) < NEW_MS;
  const before = useRef(isNew ? "" : status);
  useEffect(() => {
    if (before.current === status) return;
    before.current = status;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    ref.current?.animate([{ backgroundColor: "var(--glow)" }, { backgroundColor: "transparent" }], 1600);
  }, [status]);
}
