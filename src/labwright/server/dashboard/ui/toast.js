// Short news at the edge: what was done, or why it was not.

import { onSignOut } from "../data/session.js";
import { html, signal } from "../view.js";
import { Icon } from "./icon.js";
import { Words } from "./message.js";

const STAYS_MS = 6000;
const shown = signal([]);
let count = 0;
export const openDialogs = signal([]); // whatever is not in the last of them cannot be seen well, pressed or read aloud

export function say(text, { action, hint = "", kind = "info" } = {}) {
  const toast = { id: ++count, text, hint, action, kind };
  shown.value = [...shown.value.slice(-2), toast];
  setTimeout(() => close(toast), kind === "error" ? 2 * STAYS_MS : STAYS_MS);
}

export const sayError = (error) => say(error.message, { hint: error.hint, kind: "error" });

function close(toast) {
  shown.value = shown.value.filter((other) => other !== toast);
}

onSignOut(() => (shown.value = [])); // what one of them undoes is not for who comes next

export function Toasts({ dialog = null }) {
  if ((openDialogs.value.at(-1) ?? null) !== dialog) return null;
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.value.map(
      (toast) =>
        html`<div class="toast toast-${toast.kind}" key=${toast.id}>
          <${Icon} name=${toast.kind === "error" ? "octagon-alert" : "check"} />
          <div>
            ${toast.text}
            ${
              toast.hint &&
              html`<div class="muted">
                <${Words} text=${toast.hint} />
              </div>`
            }
          </div>
          ${
            toast.action &&
            html`<button class="link" onClick=${() => (close(toast), toast.action.run())}>
              ${toast.action.label}
            </button>`
          }
          <button class="bare" aria-label="Close" onClick=${() => close(toast)}>
            <${Icon} name="x" size="14" />
          </button>
        </div>`,
    )}
  </div>`;
}
