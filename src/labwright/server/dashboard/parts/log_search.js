// Search in the output: at once in the part that is loaded, on request in all of it.

import { isAborted } from "../api.js";
import { bytes, counted } from "../format.js";
import { useKeys } from "../keyboard.js";
import { html, useRef, useState } from "../ui.js";
import { sayError } from "./toast.js";

export function LogSearch({ reader, hits, search, onSearch, onShow }) {
  const [at, setAt] = useState(-1);
  const [isBusy, setBusy] = useState(false);
  const { words, all } = search;
  const field = useRef(null);
  useKeys({ "/": () => field.current.select() });
  const onInput = (event) => {
    setAt(-1);
    onSearch({ words: event.currentTarget.value, all: null });
  };
  const step = (by) => {
    const next = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    setAt(next);
    onShow(hits[next]);
  };
  const searchAll = async () => {
    setBusy(true); // of a huge output it takes seconds
    try {
      const found = await reader.search(words);
      const lines = found.content ? found.content.split("\n") : [];
      const searched = found.has_more_before ? found.total_size - found.offset : null;
      onSearch((now) => (now.words === words ? { words, all: lines.map((text) => ({ text, folded: 0 })), searched } : now));
    } catch (error) {
      if (!isAborted(error)) sayError(error);
    }
    setBusy(false);
  };
  const { start, end } = reader.buffer;
  const isPart = !reader.isAtEnd || start > 0;
  const canSearchAll = words && isPart && !all;
  const onKeyDown = (event) => {
    if (event.key !== "Enter") return;
    if (hits.length) step(event.shiftKey ? -1 : 1);
    else if (canSearchAll && !isBusy) searchAll();
  };
  return html`
    ${words && html`<span class="muted small num log-count">${all ? foundText(search) : hitsText(hits, at)}${isPart && !all && ` in the ${bytes(end - start)} loaded`}</span>`}
    ${canSearchAll && html`<button class="link" disabled=${isBusy} onClick=${searchAll}>${isBusy ? "Searching…" : "Search all of it"}</button>`}
    ${all && html`<button class="link" onClick=${() => onSearch({ words, all: null })}>Back to the output</button>`}
    <input ref=${field} type="search" class="small-input" placeholder="Search output" aria-label="Search output" value=${words} onInput=${onInput} onKeyDown=${onKeyDown} />`;
}

// `searched`: how many bytes at the end were looked through, if there may be more lines before these.
const foundText = ({ all, searched }) => `${searched ? "the newest " : ""}${counted(all.length, "line")}`;
const hitsText = (hits, at) => (at < 0 ? counted(hits.length, "line") : `${at + 1} of ${hits.length}`);
