// What somebody writes and has not saved or sent: kept while they look elsewhere, and asked about before the page goes.

import { useState } from "./ui.js";

const drafts = new Map(); // words, or { text, before, … }

// `none` stands for no draft; `first` goes before what was kept.
export function useDraft(name, none = null, first = none) {
  const [draft, setDraft] = useState(first === none ? (drafts.get(name) ?? none) : first);
  const keep = (value) => {
    if (value === none) drafts.delete(name);
    else drafts.set(name, value);
    setDraft(value);
  };
  return [draft, keep];
}

const isWritten = (draft) => typeof draft === "string" || draft.text !== draft.before;

addEventListener("beforeunload", (event) => {
  if ([...drafts.values()].some(isWritten)) event.preventDefault();
});
