// What somebody writes and has not saved or sent: kept while they look elsewhere and when the page is loaded anew, as phones
// do with pages in the background, and asked about before the page goes. In this tab alone: in another one it would be sent twice.
// Gone when somebody signs out, here or in another tab; a token that only expired leaves it to whoever goes on.

import { signOuts } from "../data/session.js";
import { keyOf } from "../data/storage.js";
import { effect, useState } from "../view.js";
import { say } from "./toast.js";

const KEY = keyOf("drafts");
let { after, entries } = kept();
const drafts = new Map(entries); // words, { text, before, … }, or the fields of a form

function kept() {
  const none = { after: signOuts.value, entries: [] };
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? none;
  } catch {
    return none; // a browser may forbid it
  }
}

function keepAll() {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ after, entries: [...drafts] }));
  } catch {
    // Not allowed or full: it lasts as long as the page.
  }
}

// At once, and when the page comes back after somebody signed out while it was away.
effect(() => {
  if (after === signOuts.value) return;
  after = signOuts.value;
  drafts.clear();
  keepAll();
});

export const hasDraft = (name) => drafts.has(name);

export function putDraft(name, value, none) {
  if (value === none) drafts.delete(name);
  else drafts.set(name, value);
  keepAll();
}

// `none` stands for no draft; `first` is there before anything was written. Answers the draft, how to keep another one in its
// place, and how to do without it, which can be undone: then `undone` is called.
export function useDraft(name, none = null, first = none, undone = () => {}) {
  const [draft, setDraft] = useState(drafts.get(name) ?? first);
  const keep = (value) => {
    putDraft(name, value, none);
    setDraft(value);
  };
  const drop = () => {
    if (isWritten(draft))
      say("What you wrote is gone.", { action: { label: "Undo", run: () => (keep(draft), undone()) } });
    keep(none);
  };
  return [draft, keep, drop];
}

const UNFILLED = Object.freeze({});

// What was filled into a form, by field. Never a secret: it would lie in the browser. A field that is as it was `before` is
// none of it.
export function useFormDraft(name, undone) {
  const [fields, keep, drop] = useDraft(name, UNFILLED, UNFILLED, undone);
  const set = (field, value, before = "") => {
    const next = { ...fields, [field]: value };
    if (String(value) === String(before)) delete next[field];
    keep(Object.keys(next).length ? next : UNFILLED);
  };
  return { fields, set, clear: () => keep(UNFILLED), drop };
}

const isWritten = (draft) => (draft.before === undefined ? Object.keys(draft).length > 0 : draft.text !== draft.before);

addEventListener("beforeunload", (event) => {
  if ([...drafts.values()].some(isWritten)) event.preventDefault();
});
