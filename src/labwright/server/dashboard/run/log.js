// A run's output, live. Only visible lines are in the page; only part of a long output is in memory.

import { bytes, counted, exactTime } from "../format.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../view.js";
import { isAborted } from "../data/api.js";
import { useKeys } from "../data/keyboard.js";
import { isTerminal, onHint, resync } from "../data/store.js";
import { throttle } from "../data/throttle.js";
import { Icon } from "../ui/icon.js";
import { showToast, showError } from "../ui/toast.js";
import { useVirtual } from "../ui/virtual.js";
import { pieces, stripAnsi } from "./ansi.js";
import { LogReader } from "./log_reader.js";

const LINE_HEIGHT = 18;
const GROW_MS = 250;
const NEAR = 30 * LINE_HEIGHT;

export function Log({ run }) {
  const [, draw] = useState(0);
  const changed = () => draw((count) => count + 1);
  const [follows, setFollows] = useState(true);
  const [marked, setMarked] = useState(null); // the line itself: line numbers shift when lines are added above
  const [isSearching, setSearching] = useState(false);
  const goal = useRef(null);
  const [search, setSearch] = useState({ query: "", all: null });
  const reader = useReader(run, follows, changed);
  const { buffer } = reader;
  const lines = search.all ?? buffer.lines;
  const { ref, first, last, before, after } = useVirtual(lines.length, LINE_HEIGHT);
  const hits = useMemo(() => hitsIn(lines, search), [search, lines, lines.length, buffer.end, buffer.start]);

  useLayoutEffect(() => {
    const box = ref.current;
    if (goal.current) {
      box.scrollTop = lines.indexOf(goal.current) * LINE_HEIGHT - box.clientHeight / 3;
      box.scrollIntoView({ block: "nearest" });
    } else if (follows && !search.all) box.scrollTop = box.scrollHeight;
    else if (buffer.shifted) box.scrollTop += buffer.shifted * LINE_HEIGHT;
    buffer.shifted = 0;
    goal.current = null;
  });

  const onScroll = ({ currentTarget: box }) => {
    if (search.all || !ref.current) return; // ref is empty if the page was closed
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    setFollows(below < LINE_HEIGHT && reader.isAtEnd);
    if (box.scrollTop < NEAR && buffer.start > 0) reader.earlier();
    if (below < NEAR && !reader.isAtEnd) reader.later();
  };
  const show = (line) => {
    goal.current = line;
    setFollows(false);
    setMarked(line);
    changed();
  };
  const toEnd = async () => {
    setMarked(null);
    setSearch({ query: search.query, all: null });
    if (!reader.isAtEnd) await reader.tail();
    setFollows(true);
  };
  const toError = async () => {
    setSearching(true); // a huge output takes seconds
    setSearch({ query: "", all: null }); // clear it now, so that new input is not lost
    try {
      const { offset, searched, total_size: total } = await reader.firstError();
      if (offset === null)
        showToast(`No error found in ${searched < total ? `the first ${bytes(searched)} of ` : ""}this output.`);
      else await showAt(offset);
    } catch (error) {
      if (!isAborted(error)) showError(error);
    }
    setSearching(false);
  };
  const showAt = async (offset) => {
    setFollows(false);
    const line = await reader.lineAt(offset);
    if (line) show(line);
  };

  return html`<section class="log" aria-label="Output">
    <header class="section-head">
      <h2>Output</h2>
      <span class="muted small num">${reader.total ? bytes(reader.total) : ""}</span>
      <div class="controls">
        <${LogSearch} reader=${reader} hits=${hits} search=${search} onSearch=${setSearch} onShow=${show} />
        <button disabled=${isSearching} onClick=${toError}>
          ${isSearching ? "Searching…" : "First error"}
        </button>
        <button aria-pressed=${String(follows)} onClick=${toEnd}>
          <${Icon} name="arrow-down" size="14" />
          ${isTerminal(run) ? "End" : "Follow"}
        </button>
      </div>
    </header>
    <div class="log-lines" ref=${ref} onScroll=${onScroll} tabindex="0" role="log" aria-live="off">
      <div style=${{ height: `${before}px` }}></div>
      ${lines
        .slice(first, last)
        .map(
          (line, offset) =>
            html`<${Line} key=${first + offset} line=${line} query=${search.query} marked=${line === marked} />`,
        )}
      <div style=${{ height: `${after}px` }}></div>
      ${!lines.length && html`<p class="muted log-empty">${emptyText(run, search, reader)}</p>`}
    </div>
  </section>`;
}

function emptyText(run, search, { isRead, removedAt }) {
  if (!isRead) return "";
  if (removedAt) return `labwright gc removed this output on ${exactTime(removedAt)}.`;
  if (search.all) return `No match${search.searched ? ` in the last ${bytes(search.searched)}` : ""}.`;
  return isTerminal(run) ? "No output." : "No output yet.";
}

// Read the end first, then more on every hint, at the end of the run and after a reconnect.
function useReader(run, follows, changed) {
  const reader = useMemo(() => new LogReader(run.id, changed), [run.id]);
  const following = useRef(follows);
  following.current = follows;
  const again = resync.value;
  useEffect(() => {
    reader.tail();
    const grow = throttle(() => reader.grow(following.current), GROW_MS);
    const unsubscribe = onHint("output", run.id, grow);
    return () => {
      unsubscribe();
      grow.cancel();
      reader.close();
    };
  }, [reader]);
  const state = `${again} ${run.status}`;
  const read = useRef(state); // the end is being read
  useEffect(() => {
    if (read.current !== state) reader.grow(following.current);
    read.current = state;
  }, [reader, state]);
  return reader;
}

function hitsIn(lines, { query, all }) {
  if (!query || all) return [];
  const lower = query.toLowerCase();
  return lines.filter((line) => stripAnsi(line.text).toLowerCase().includes(lower));
}

function Line({ line, query, marked }) {
  const text = line.text.endsWith("\r") ? line.text.slice(0, -1) : line.text;
  return html`<div class="line ${marked ? `line-marked ${query ? "" : "line-error"}` : ""}">
    ${pieces(text).map(
      (piece) =>
        html`<span class=${piece.class} style=${piece.style}>
          ${highlighted(piece.text, query)}
        </span>`,
    )}
    ${
      line.folded > 0 &&
      html`<span class="folded" title="${line.folded} overwritten versions of this line are hidden">
        ↻ ${line.folded}
      </span>`
    }
  </div>`;
}

function highlighted(text, query) {
  if (!query) return text;
  const low = text.toLowerCase();
  const lower = query.toLowerCase();
  const parts = [];
  let from = 0;
  for (let at = low.indexOf(lower); at >= 0; at = low.indexOf(lower, from)) {
    parts.push(text.slice(from, at), html`<mark>${text.slice(at, at + query.length)}</mark>`);
    from = at + query.length;
  }
  return [...parts, text.slice(from)];
}

// Search the loaded part at once, and the whole output on request.
function LogSearch({ reader, hits, search, onSearch, onShow }) {
  const [at, setAt] = useState(-1);
  const [isBusy, setBusy] = useState(false);
  const { query, all } = search;
  const field = useRef(null);
  useKeys({ "/": () => field.current.select() });
  const onInput = (event) => {
    setAt(-1);
    onSearch({ query: event.currentTarget.value, all: null });
  };
  const step = (by) => {
    const next = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    setAt(next);
    onShow(hits[next]);
  };
  const searchAll = async () => {
    setBusy(true); // a huge output takes seconds
    try {
      const found = await reader.search(query);
      const lines = found.content ? found.content.split("\n") : [];
      const searched = found.has_more_before ? found.total_size - found.offset : null;
      onSearch((now) =>
        now.query === query ? { query, all: lines.map((text) => ({ text, folded: 0 })), searched } : now,
      );
    } catch (error) {
      if (!isAborted(error)) showError(error);
    }
    setBusy(false);
  };
  const { start, end } = reader.buffer;
  const isPart = !reader.isAtEnd || start > 0;
  const canSearchAll = query && isPart && !all;
  const onKeyDown = (event) => {
    if (event.key !== "Enter") return;
    if (hits.length) step(event.shiftKey ? -1 : 1);
    else if (canSearchAll && !isBusy) searchAll();
  };
  return html`${
    query &&
    html`<span class="muted small num log-count">
      ${all ? foundText(search) : hitsText(hits, at)}
      ${isPart && !all && ` in the ${bytes(end - start)} loaded`}
    </span>`
  }
  ${
    canSearchAll &&
    html`<button class="link" disabled=${isBusy} onClick=${searchAll}>
      ${isBusy ? "Searching…" : "Search everything"}
    </button>`
  }
  ${
    all &&
    html`<button class="link" onClick=${() => onSearch({ query, all: null })}>
      Back to output
    </button>`
  }
  <input
    ref=${field}
    type="search"
    class="small-input"
    placeholder="Search output"
    aria-label="Search output"
    value=${query}
    onInput=${onInput}
    onKeyDown=${onKeyDown}
  />`;
}

// `searched`: number of bytes searched at the end, if the search was cut off.
const foundText = ({ all, searched }) => `${searched ? "the newest " : ""}${counted(all.length, "line")}`;
const hitsText = (hits, at) => (at < 0 ? counted(hits.length, "line") : `${at + 1} of ${hits.length}`);
