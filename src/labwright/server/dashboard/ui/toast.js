// Short messages at the edge of the window.

import { html, signal } from "../view.js";
import { onSignOut } from "../data/session.js";
import { Icon } from "./icon.js";
import { HintText } from "./message.js";

const STAYS_MS = 6000;
const shown = signal([]);
let count = 0;
export const openDialogs = signal([]); // toasts are drawn inside the last one: the rest of the page is inert

export function showToast(text, { action, hint = "", kind = "info" } = {}) {
  const toast = { id: ++count, text, hint, action, kind };
  shown.value = [...shown.value.slice(-2), toast];
  setTimeout(() => close(toast), kind === "error" ? 2 * STAYS_MS : STAYS_MS);
}

export const showError = (error) => showToast(error.message, { hint: error.hint, kind: "error" });

function close(toast) {
  shown.value = shown.value.filter((other) => other !== toast);
}

onSignOut(() => (shown.value = [])); // the next user must not undo anything

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
                <${HintText} text=${toast.hint} />
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
