import { html, useState } from "../view.js";
import { Icon } from "./icon.js";
import { showToast } from "./toast.js";

// A button that shows `shown` and copies `text`.
export function Copy({ text, shown = text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      showToast("The browser does not allow copying.", { hint: text });
    }
  };
  return html`<button class="copy" title="${label}: ${text}" onClick=${copy}>
    <span>${shown}</span>
    <${Icon} name=${done ? "check" : "copy"} size="12" />
  </button>`;
}
