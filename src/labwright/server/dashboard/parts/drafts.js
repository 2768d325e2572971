// What somebody writes and has not saved or sent: kept while they look elsewhere, and asked about before the page goes.

import { useState } from "../ui.js";
import { say } from "./toast.js";

const drafts = new Map(); // words, or { text, before, … }

// `none` stands for no draft; `first` goes before what was kept. Answers the draft, how to keep another one in its place,
// and how to do without it, which can be undone.
export function useDraft(name, none = null, first = none) {
  const [draft, setDraft] = useState(first === none ? (drafts.get(name) ?? none) : first);
  const keep = (value) => {
    if (value === none) drafts.delete(name);
    else drafts.set(name, value);
    setDraft(value);
  };
  const drop = () => {
    if (isWritten(draft)) say("What you wrote is gone.", { action: { label: "Undo", run: () => keep(draft) } });
    keep(none);
  };
  return [draft, keep, drop];
}

const isWritten = (draft) => typeof draft === "string" || draft.text !== draft.before;

addEventListener("beforeunload", (event) => {
  if ([...drafts.values()].some(isWritten)) event.preventDefault();
});
