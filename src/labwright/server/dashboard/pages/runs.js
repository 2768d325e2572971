// The table of runs. Live, but nothing moves by itself: a row that changed glows, new rows wait if they would push.

import { number } from "../format.js";
import { useKeys } from "../keyboard.js";
import { Icon } from "../parts/icon.js";
import { Message, Problem } from "../parts/message.js";
import { reasonOf, Status } from "../parts/status.js";
import { Ago, Duration } from "../parts/time.js";
import { scrollToRow, useVirtual } from "../parts/virtual.js";
import { go, route, runAddress, setQuery } from "../router.js";
import * as list from "../run_list.js";
import { knownRun, reloads, watchRun } from "../store.js";
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../ui.js";

const NEAR_END_ROWS = 40;
const NEW_MS = 3000;
const phone = matchMedia("(max-width: 640px)");
const isPhone = signal(phone.matches);
phone.addEventListener("change", () => (isPhone.value = phone.matches));
let lastOpened = ""; // coming back from a run, its row is the one selected

export function RunsPage() {
  const { query } = route.value;
  const filter = { q: query.get("q") ?? "", show: query.get("show") in list.SHOWN ? query.get("show") : "all" };
  const loads = reloads.value;
  useEffect(() => {
    document.title = "Runs · Labwright";
  }, []);
  useEffect(() => {
    if (loads) list.loadRows(filter);
  }, [filter.q, filter.show, loads]);

  return html`<div class="page runs-page">
    <header class="page-head">
      <h1>Runs</h1>
      <${FilterBox} q=${filter.q} />
      <${Chips} show=${filter.show} />
    </header>
    <${Body} filter=${filter} />
  </div>`;
}

function FilterBox({ q }) {
  const ref = useRef(null);
  useKeys({ "/": () => ref.current.select() });
  useEffect(() => {
    if (document.activeElement !== ref.current) ref.current.value = q;
  }, [q]);
  return html`<label class="filter">
    <${Icon} name="search" />
    <input ref=${ref} type="search" placeholder="Filter by name or command" aria-label="Filter runs" onInput=${(event) => setQuery({ q: event.currentTarget.value })}
      spellcheck=${false} autocomplete="off" />
    <kbd>/</kbd>
  </label>`;
}

function Chips({ show }) {
  return html`<div class="chips" role="group" aria-label="Show runs by status">${Object.entries(list.SHOWN).map(
    ([name, { label }]) => html`<button key=${name} class="chip" aria-pressed=${String(name === show)}
      onClick=${() => setQuery({ show: name === "all" ? "" : name })}>${label}</button>`,
  )}</div>`;
}

function Body({ filter }) {
  if (list.state.value === "failed") return html`<${Problem} error=${list.problem.value} retry=${() => list.loadRows(filter)} />`;
  if (list.state.value === "loading") return html`<div class="loading" aria-busy="true"></div>`;
  if (!list.rows.value.length && !list.waitingRows.value.length) return html`<${Nothing} filter=${filter} />`;
  return html`<${Table} />`;
}

function Nothing({ filter }) {
  useEffect(() => list.followNewRuns(() => true), []);
  if (filter.q || filter.show !== "all") {
    return html`<${Message} icon="search" title="No run matches">
      <p class="muted">Nothing here has this name, command or status.</p>
      <button onClick=${() => setQuery({ q: "", show: "" })}>Show all runs</button>
    </${Message}>`;
  }
  return html`<${Message} icon="flask-conical" title="No runs yet">
    <p class="muted">Start one in this project's folder. It shows up here at once.</p>
    <pre class="teach">labwright run -- python train.py</pre>
  </${Message}>`;
}

function Table() {
  const ids = list.rows.value;
  const [rowHeight, headHeight] = isPhone.value ? [60, 0] : [36, 30]; // as in style/pages.css
  const { ref, first, last, before, after } = useVirtual(ids.length, rowHeight);
  const [selected, setSelected] = useState(lastOpened);
  const pointerInside = useRef(false);

  useEffect(() => list.followNewRuns(() => !pointerInside.current && ref.current.scrollTop === 0), []);
  useEffect(() => {
    if (last > ids.length - NEAR_END_ROWS) list.loadMoreRows();
  }, [last, ids.length]);
  useLayoutEffect(() => {
    if (lastOpened && ids.includes(lastOpened)) scrollToRow(ref.current, ids.indexOf(lastOpened), rowHeight, headHeight);
  }, []);

  const select = (index) => {
    const id = ids[Math.max(0, Math.min(ids.length - 1, index))];
    setSelected(id);
    scrollToRow(ref.current, ids.indexOf(id), rowHeight, headHeight);
  };
  const at = ids.indexOf(selected);
  useKeys({
    j: () => select(at + 1),
    k: () => select(at < 0 ? 0 : at - 1),
    Enter: () => selected && open(selected),
    Escape: () => {
      setSelected("");
      document.activeElement.blur();
    },
  });

  const columns = list.columns.value;
  return html`<${Waiting} box=${ref} />
    <div class="table" ref=${ref} tabindex="-1" style=${{ "--metrics": "minmax(64px, 96px) ".repeat(columns.length) }}
      onPointerEnter=${(event) => (pointerInside.current = event.pointerType === "mouse")}
      onPointerLeave=${() => (pointerInside.current = false)}>
      <div role="table" aria-label="Runs" aria-rowcount=${list.hasMore.value ? -1 : ids.length + 1}>
        <${Head} columns=${columns} />
        <div style=${{ height: `${before}px` }}></div>
        ${ids.slice(first, last).map(
          (id, offset) => html`<${Row} key=${id} id=${id} index=${first + offset} columns=${columns} selected=${id === selected} />`,
        )}
        <div style=${{ height: `${after}px` }}></div>
      </div>
      ${list.hasMore.value && html`<p class="muted small more">Loading more…</p>`}
    </div>`;
}

function open(id) {
  lastOpened = id;
  go(runAddress(id));
}

function Waiting({ box }) {
  const count = list.waitingRows.value.length;
  if (!count) return null;
  const show = () => {
    list.showWaitingRows();
    box.current.scrollTop = 0;
  };
  return html`<button class="new-rows" onClick=${show}>Show ${count} new ${count === 1 ? "run" : "runs"}</button>`;
}

const Head = ({ columns }) => html`<div class="row row-head" role="row">
  <span role="columnheader">Status</span>
  <span role="columnheader">Name</span>
  ${columns.map((key) => html`<span class="num" role="columnheader" key=${key} title=${key}>${key}</span>`)}
  <span class="num" role="columnheader">Duration</span>
  <span class="num" role="columnheader">Created</span>
  <span role="columnheader">Result</span>
</div>`;

function Row({ id, index, columns, selected }) {
  const ref = useRef(null);
  const run = knownRun(id)?.value;
  useEffect(() => watchRun(id), [id]);
  useGlow(ref, run);
  useEffect(() => {
    if (run) list.noticeMetrics(run);
  }, [run?.summary]);
  useEffect(() => {
    if (selected) ref.current?.querySelector("a").focus({ preventScroll: true });
  }, [selected]);
  if (!run) return null;

  const reason = reasonOf(run);
  const gone = run.deleted ? "row-deleted" : "";
  return html`<div ref=${ref} class="row ${selected ? "row-selected" : ""} ${gone}" role="row" aria-rowindex=${index + 2}>
    <span role="cell" class="cell-status"><${Status} run=${run} /></span>
    <span role="cell" class="cell-name">
      <a href=${runAddress(id)} onClick=${() => (lastOpened = id)} title=${run.name}>${run.name}</a>
      <span class="tags">${run.tags.map((tag) => html`<span class="tag" key=${tag}>${tag}</span>`)}</span>
    </span>
    ${columns.map((key) => html`<${Metric} key=${key} name=${key} summary=${run.summary[key]} />`)}
    <span role="cell" class="num cell-duration"><${Duration} run=${run} /></span>
    <span role="cell" class="num muted cell-created"><${Ago} time=${run.created_at} /></span>
    <span role="cell" class="muted cell-result" title=${reason}>${run.deleted ? "deleted" : reason}</span>
  </div>`;
}

const Metric = ({ name, summary }) => html`<span role="cell" class="num cell-metric" data-key=${name}
  title=${summary ? `${name} = ${summary.last}` : undefined}>${number(summary?.last)}</span>`;

// Once for each change of status that happens before somebody's eyes; for a run that was just made, at once.
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
