// Unsaved text: kept across pages and reloads of this tab; the browser warns before the tab closes. Not shared with
// other tabs, where it could be sent twice. Deleted on sign-out, but not when a token expires.

import { effect, useState } from "../view.js";
import { signOuts } from "../data/session.js";
import { keyOf } from "../data/storage.js";
import { showToast } from "./toast.js";

const KEY = keyOf("drafts");
let { after, entries } = kept();
const drafts = new Map(entries); // name → text, { text, before, … }, or the fields of a form

function kept() {
  const none = { after: signOuts.value, entries: [] };
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? none;
  } catch {
    return none; // the browser forbids it
  }
}

function keepAll() {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ after, entries: [...drafts] }));
  } catch {
    // Forbidden or full: drafts last as long as the page.
  }
}

// Delete drafts on sign-out, also if it happened while this page was suspended.
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

// Return [draft, keep, drop]. `none` means no draft; `first` is the initial value. Dropping can be undone, which calls
// `undone`.
export function useDraft(name, none = null, first = none, undone = () => {}) {
  const [draft, setDraft] = useState(drafts.get(name) ?? first);
  const keep = (value) => {
    putDraft(name, value, none);
    setDraft(value);
  };
  const drop = () => {
    if (isWritten(draft))
      showToast("Draft discarded.", { action: { label: "Undo", run: () => (keep(draft), undone()) } });
    keep(none);
  };
  return [draft, keep, drop];
}

const UNFILLED = Object.freeze({});

// The changed fields of a form. Never use it for secrets: it is stored in the browser. A field with its `before` value
// is not part of the draft.
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
