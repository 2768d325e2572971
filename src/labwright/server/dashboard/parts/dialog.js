// A panel over the page. Escape closes it; the focus goes back to where it was.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../ui.js";
import { openDialogs, Toasts } from "./toast.js";

// Opened before the next key is heard: an Escape typed at once closes it. Closed before it is taken out of the page: what is
// behind an open one cannot have the focus.
export function useModal(ref) {
  useLayoutEffect(() => {
    const panel = ref.current;
    panel.showModal();
    return () => panel.close();
  }, []);
}

export function Dialog({ title, onClose, wide = false, children }) {
  const ref = useRef(null);
  const self = useMemo(() => ({}), []);
  useModal(ref);
  useEffect(() => {
    openDialogs.value = [...openDialogs.value, self];
    return () => (openDialogs.value = openDialogs.value.filter((other) => other !== self));
  }, []);
  const onCancel = (event) => {
    event.preventDefault(); // closed by being taken out of the page
    onClose();
  };
  return html`<dialog ref=${ref} class="dialog ${wide ? "dialog-wide" : ""}" onCancel=${onCancel} aria-label=${title}><h2>${title}</h2>${children}<${Toasts} dialog=${self} /></dialog>`;
}

export function TextDialog({ title, label, text, verb, short = false, onSave, onClose }) {
  const [draft, setDraft] = useState(text);
  const onInput = (event) => setDraft(event.currentTarget.value);
  const submit = (event) => {
    event.preventDefault();
    if (draft.trim()) onSave(draft);
  };
  return html`<${Dialog} title=${title} onClose=${onClose} wide=${!short}><form onSubmit=${submit} class="stack">
    ${short ? html`<input type="text" aria-label=${label} value=${draft} maxlength="200" autofocus onInput=${onInput} />`
      : html`<textarea rows="8" aria-label=${label} value=${draft} autofocus spellcheck=${false} onInput=${onInput}></textarea>`}
    <div class="dialog-verbs"><button type="button" onClick=${onClose}>Cancel</button><button class="primary">${verb}</button></div></form></${Dialog}>`;
}
