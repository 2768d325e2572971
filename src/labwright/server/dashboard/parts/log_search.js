// Search in the output: at once in the part that is loaded, on request in all of it.

import { counted } from "../format.js";
import { html, useState } from "../ui.js";
import { sayError } from "./toast.js";

export function LogSearch({ reader, hits, search, onSearch, onShow }) {
  const [at, setAt] = useState(-1);
  const { words, all } = search;
  const onInput = (event) => {
    setAt(-1);
    onSearch({ words: event.currentTarget.value, all: null });
  };
  const step = (by) => {
    if (!hits.length) return;
    const next = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    setAt(next);
    onShow(hits[next]);
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
  };
  const searchAll = async () => {
    try {
      const found = await reader.search(words);
      const lines = found.content ? found.content.split("\n") : [];
      onSearch({ words, all: lines.map((text) => ({ text, folded: 0 })) });
    } catch (error) {
      sayError(error);
    }
  };
  const isPart = !reader.isAtEnd || reader.buffer.start > 0;
  return html`
    ${words && html`<span class="muted small num log-count">${countText(all, hits, at)}</span>`}
    ${words && isPart && !all && html`<button class="link" onClick=${searchAll}>Search all of it</button>`}
    ${all && html`<button class="link" onClick=${() => onSearch({ words, all: null })}>Back to the output</button>`}
    <input type="search" class="small-input" placeholder="Search output" aria-label="Search output" onInput=${onInput} onKeyDown=${onKeyDown} />`;
}

function countText(all, hits, at) {
  if (all) return counted(all.length, "line");
  return at < 0 ? counted(hits.length, "line") : `${at + 1} of ${hits.length}`;
}
