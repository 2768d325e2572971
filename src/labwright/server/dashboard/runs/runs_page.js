// The runs table. It is live, but rows do not move: a changed row glows, and new rows wait for a click.

import { counted } from "../format.js";
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../view.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useKeys } from "../data/keyboard.js";
import { go, route, runAddress, setQuery } from "../data/router.js";
import { knownRun, reloads, resync } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { Message, Problem } from "../ui/message.js";
import { scrollToRow, useVirtual } from "../ui/virtual.js";
import { NewButton } from "../work/new_work.js";
import * as list from "./run_list.js";
import { GroupRow, Head, RunRow } from "./run_rows.js";
import { clearTicked, SelectionBar, tick, ticked } from "./selection_bar.js";
import { RunsToolbar } from "./toolbar.js";

const NEAR_END_ROWS = 40;
const phone = matchMedia("(max-width: 640px)");
const isPhone = signal(phone.matches);
phone.addEventListener("change", () => (isPhone.value = phone.matches));
let lastOpened = ""; // selected again when the user returns

export default function RunsPage() {
  const { query } = route.value;
  const view = useMemo(() => list.viewOf(query), [query.toString()]);
  const loads = reloads.value;
  const connections = resync.value;
  useTitle("Runs");
  useEffect(() => {
    if (loads) list.loadRows(view);
  }, [view.q, view.show, view.tag, view.sweep, view.sort, Boolean(view.group), loads]);
  useEffect(() => list.retryRows(), [connections]);
  const columns = view.cols ?? list.commonColumns.value;
  return html`<div class="page runs-page">
    <${RunsToolbar} view=${view} columns=${columns} />
    <${Body} view=${view} columns=${columns} />
    <${SelectionBar} />
  </div>`;
}

function Body({ view, columns }) {
  if (list.state.value === "failed")
    return html`<${Problem} error=${list.problem.value} retry=${() => list.loadRows(view)} />`;
  if (list.state.value === "loading") return html`<div class="loading" aria-busy="true"></div>`;
  if (!list.rows.value.length && !list.waitingRows.value.length) return html`<${Nothing} view=${view} />`;
  return html`<${Table} view=${view} columns=${columns} />`;
}

function Nothing({ view }) {
  useEffect(() => list.followNewRuns(() => true), []);
  if (view.q || view.tag || view.sweep || view.show !== "all") {
    return html`<${Message} icon="search" title="No matching runs">
      <p class="muted">No run has this name, command, tag or status.</p>
      <button onClick=${() => setQuery({ q: "", show: "", tag: "", sweep: "" })}>Show all runs</button>
    </${Message}>`;
  }
  return html`<${Message} icon="flask-conical" title="No runs yet">
    <p class="muted">Start a run in the project folder. It appears here at once.</p>
    <pre class="teach">labwright run -- python train.py</pre>
    <${NewButton} name="run" />
  </${Message}>`;
}

function Table({ view, columns }) {
  const ids = list.rows.value;
  const closed = list.closedGroups.value;
  const sweepNames = useSweepNames(view.group === "sweep");
  const items = useMemo(() => list.itemsOf(ids, view.group, sweepNames, closed), [ids, view.group, sweepNames, closed]);
  const [rowHeight, headHeight] = isPhone.value ? [60, 0] : [36, 30]; // as in style/runs.css
  const { ref, first, last, before, after } = useVirtual(items.length, rowHeight);
  const [selected, setSelected] = useState(lastOpened);
  const pointerInside = useRef(false);
  const anchor = useRef("");

  const mayMove = () =>
    !pointerInside.current && ref.current.scrollTop === 0 && view.sort === "-created_at" && !view.group;
  useEffect(() => list.followNewRuns(mayMove), [view.sort, view.group]);
  useEffect(() => {
    if (last > items.length - NEAR_END_ROWS) list.loadMoreRows();
  }, [last, items.length]);

  useLayoutEffect(() => {
    ref.current.scrollTop = 0; // show the first rows of the new view
  }, [view.q, view.show, view.tag, view.sweep, view.sort, view.group]);
  const names = useMemo(() => items.map(nameOfItem), [items]);
  useLayoutEffect(() => {
    if (lastOpened && names.includes(lastOpened))
      scrollToRow(ref.current, names.indexOf(lastOpened), rowHeight, headHeight);
  }, []);
  const at = names.indexOf(selected);
  const select = (index) => {
    const name = names[Math.max(0, Math.min(names.length - 1, index))];
    setSelected(name);
    scrollToRow(ref.current, names.indexOf(name), rowHeight, headHeight);
  };
  // Select the row that has the focus.
  const followFocus = ({ target }) => {
    const name = names[target.closest("[role=row]")?.ariaRowIndex - 2];
    if (name) setSelected(name);
  };
  const open = () => {
    const item = items[at];
    if (item?.id) openRun(item.id);
    else if (item) list.toggleGroup(item.group.key);
  };
  const order = useRef(names);
  order.current = names;
  // With Shift, tick all rows between this one and the last ticked one.
  const onTick = useMemo(
    () => (id, on, extend) => {
      const [from, to] = [order.current.indexOf(anchor.current), order.current.indexOf(id)].sort((a, b) => a - b);
      tick(extend && from >= 0 ? order.current.slice(from, to + 1).filter((name) => knownRun(name)) : [id], on);
      anchor.current = id;
    },
    [],
  );
  useKeys({
    j: () => select(at + 1),
    k: () => select(at < 0 ? 0 : at - 1),
    x: () => items[at]?.id && onTick(items[at].id, !ticked.value.has(items[at].id), false),
    Enter: () => selected && open(),
    Escape: () => {
      setSelected("");
      clearTicked();
      document.activeElement.blur();
    },
  });

  // Rows with unchanged properties are not drawn again while scrolling.
  const row = (item, index) =>
    item.group
      ? html`<${GroupRow}
        key=${nameOfItem(item)}
        group=${item.group}
        index=${index}
        columns=${columns}
        isClosed=${closed.has(item.group.key)}
        selected=${nameOfItem(item) === selected}
      />`
      : html`<${RunRow}
        key=${item.id}
        id=${item.id}
        under=${item.under}
        index=${index}
        columns=${columns}
        selected=${item.id === selected}
        onOpen=${opened}
        onTick=${onTick}
      />`;
  return html`<${Waiting} box=${ref} />
  <div
    class="table"
    ref=${ref}
    tabindex="0"
    style=${{
      "--metrics": `minmax(${view.group ? 124 : 72}px, ${view.group ? 136 : 88}px) `.repeat(columns.length),
      "--count": columns.length,
      "--each": view.group ? "136px" : "108px",
    }}
    aria-label="Runs table"
    role="region"
    onPointerEnter=${(event) => (pointerInside.current = event.pointerType === "mouse")}
    onPointerLeave=${() => (pointerInside.current = false)}
  >
    <div
      class="table-rows"
      role="table"
      aria-label="Runs"
      onFocusCapture=${followFocus}
      aria-rowcount=${list.hasMore.value ? -1 : items.length + 1}
    >
      <${Head} columns=${columns} sort=${view.sort} ids=${ids} />
      <div style=${{ height: `${before}px` }}></div>
      ${items.slice(first, last).map((item, offset) => row(item, first + offset))}
      <div style=${{ height: `${after}px` }}></div>
    </div>
    ${list.hasMore.value && html`<p class="muted small more">Loading more…</p>`}
  </div>`;
}

const nameOfItem = (item) => item.id ?? `group ${item.group.key}`;
const opened = (id) => (lastOpened = id);

function openRun(id) {
  lastOpened = id;
  go(runAddress(id));
}

function useSweepNames(wanted) {
  const { data } = useFetched(wanted ? "sweeps" : null, { limit: 1000 }, { refreshOn: eventTypes("sweep.created") });
  return useMemo(() => new Map((data ?? []).map(({ id, name }) => [id, name])), [data]);
}

function Waiting({ box }) {
  const count = list.waitingRows.value.length;
  if (!count) return null;
  const show = () => {
    list.showWaitingRows();
    box.current.scrollTop = 0;
  };
  return html`<button class="new-rows" onClick=${show}>
    Show ${counted(count, "new run")}
  </button>`;
}
