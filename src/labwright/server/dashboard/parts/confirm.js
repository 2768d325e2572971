// A question before something that cannot be undone.

import { html, signal } from "../ui.js";
import { Dialog } from "./dialog.js";

const question = signal(null);

export function ask({ title, text, verb, kind = "danger" }) {
  return new Promise((resolve) => (question.value = { title, text, verb, kind, resolve }));
}

export function Confirm() {
  const asked = question.value;
  if (!asked) return null;
  const answer = (yes) => {
    question.value = null;
    asked.resolve(yes);
  };
  return html`<${Dialog} title=${asked.title} onClose=${() => answer(false)}>
    <p class="muted">${asked.text}</p>
    <div class="dialog-verbs">
      <button onClick=${() => answer(false)}>Cancel</button>
      <button class=${asked.kind} autofocus onClick=${() => answer(true)}>${asked.verb}</button>
    </div>
  </${Dialog}>`;
}
