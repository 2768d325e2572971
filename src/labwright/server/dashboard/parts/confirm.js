// A question before something that cannot be undone.

import { onSignOut } from "../session.js";
import { html, signal } from "../ui.js";
import { Dialog } from "./dialog.js";

const question = signal(null);

export function ask({ title, text, verb, kind = "danger" }) {
  return new Promise((resolve) => (question.value = { title, text, verb, kind, resolve }));
}

function answer(yes) {
  const { resolve } = question.value;
  question.value = null;
  resolve(yes);
}

onSignOut(() => question.value && answer(false)); // not for who comes next to answer

export function Confirm() {
  const asked = question.value;
  if (!asked) return null;
  return html`<${Dialog} title=${asked.title} onClose=${() => answer(false)}>
    <p class="muted">${asked.text}</p>
    <div class="dialog-verbs">
      <button onClick=${() => answer(false)}>Cancel</button>
      <button class=${asked.kind} autofocus onClick=${() => answer(true)}>${asked.verb}</button>
    </div>
  </${Dialog}>`;
}
