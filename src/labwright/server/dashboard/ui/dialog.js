// Modal dialogs. Escape closes them; the focus returns to where it was.

import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../view.js";
import { onSignOut } from "../data/session.js";
import { openDialogs, Toasts } from "./toast.js";

// Open in a layout effect, so that an Escape typed at once closes it. Close before removal, so that the element behind
// it can get the focus.
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
    event.preventDefault(); // closed by its removal
    onClose();
  };
  return html`<dialog ref=${ref} class="dialog ${wide ? "dialog-wide" : ""}" onCancel=${onCancel} aria-label=${title}>
    <h2>${title}</h2>
    ${children}
    <${Toasts} dialog=${self} />
  </dialog>`;
}

export function TextDialog({ title, label, text, verb, short = false, onSave, onClose }) {
  const [draft, setDraft] = useState(text);
  const onInput = (event) => setDraft(event.currentTarget.value);
  const submit = (event) => {
    event.preventDefault();
    if (draft.trim()) onSave(draft);
  };
  return html`<${Dialog} title=${title} onClose=${onClose} wide=${!short}>
    <form onSubmit=${submit} class="stack">
      ${
        short
          ? html`<input type="text" aria-label=${label} value=${draft} maxlength="200" autofocus onInput=${onInput} />`
          : html`<textarea
            rows="8"
            aria-label=${label}
            value=${draft}
            autofocus
            spellcheck=${false}
            onInput=${onInput}
          ></textarea>`
      }
      <div class="dialog-verbs">
        <button type="button" onClick=${onClose}>
          Cancel
        </button>
        <button class="primary">${verb}</button>
      </div>
    </form>
  </${Dialog}>`;
}

// A confirmation before something that cannot be undone.

const question = signal(null);

export function confirmAction({ title, text, verb, kind = "danger" }) {
  return new Promise((resolve) => (question.value = { title, text, verb, kind, resolve }));
}

function answer(yes) {
  const { resolve } = question.value;
  question.value = null;
  resolve(yes);
}

onSignOut(() => question.value && answer(false)); // the next user must not answer it

export function Confirm() {
  const asked = question.value;
  if (!asked) return null;
  return html`<${Dialog} title=${asked.title} onClose=${() => answer(false)}>
    <p class="muted">${asked.text}</p>
    <div class="dialog-verbs">
      <button onClick=${() => answer(false)}>Cancel</button>
      <button class=${asked.kind} autofocus onClick=${() => answer(true)}>
        ${asked.verb}
      </button>
    </div>
  </${Dialog}>`;
}
