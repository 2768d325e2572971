// Calls to the server behind buttons and forms.

import { useState } from "../view.js";
import { confirmAction } from "./dialog.js";
import { showToast, showError } from "./toast.js";

// Return [busy, run]. `run(call, options)` awaits `call()`, shows a message or the error, and returns whether the call
// succeeded. `busy` is true meanwhile. `refresh` runs after a success.
//   confirm   a question to ask first: { title, text, verb }
//   done      the message after a success, or a function from the result to the message
//   keepBusy  stay busy after a success, because the page is about to change
export function useVerb({ refresh, onError = showError } = {}) {
  const [busy, setBusy] = useState(false);
  const run = async (call, { confirm, done, keepBusy = false } = {}) => {
    if (confirm && !(await confirmAction(confirm))) return false;
    setBusy(true);
    try {
      const result = await call();
      const message = typeof done === "function" ? done(result) : done;
      if (message) showToast(message);
      refresh?.();
    } catch (error) {
      onError(error);
      setBusy(false);
      return false;
    }
    if (!keepBusy) setBusy(false);
    return true;
  };
  return [busy, run];
}
