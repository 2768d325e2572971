// A question before something that cannot be undone.

import { html, signal, useEffect, useRef } from "../ui.js";

const question = signal(null);

export function ask({ title, text, verb, kind = "danger" }) {
  return new Promise((resolve) => (question.value = { title, text, verb, kind, resolve }));
}

export function Confirm() {
  const ref = useRef(null);
  const asked = question.value;
  useEffect(() => {
    if (asked) ref.current.showModal();
  }, [asked]);
  if (!asked) return null;

  const answer = (yes) => {
    question.value = null;
    asked.resolve(yes);
  };
  const onCancel = (event) => {
    event.preventDefault(); // closed by being taken out of the page
    answer(false);
  };
  return html`<dialog ref=${ref} class="dialog" onCancel=${onCancel} aria-labelledby="confirm-title">
    <h2 id="confirm-title">${asked.title}</h2>
    <p class="muted">${asked.text}</p>
    <div class="dialog-verbs">
      <button onClick=${() => answer(false)}>Cancel</button>
      <button class=${asked.kind} autofocus onClick=${() => answer(true)}>${asked.verb}</button>
    </div>
  </dialog>`;
}
