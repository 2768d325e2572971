// A tool that was called, folded to one line: what it was asked, and what it answered.

import { html, useState } from "../ui.js";
import { Code } from "./code.js";
import { Icon } from "./icon.js";

const SHORT = 70;

export function Call({ step }) {
  const [open, setOpen] = useState(false);
  const { name, arguments: given, result, approval } = step;
  const [icon, kind, word] = stateOf(result, approval);
  return html`<details class="fold" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><${Icon} name="wrench" size="14" /><span class="fold-name">${name.replaceAll("_", " ")}</span><span class="muted fold-brief">${brief(given)}</span>
      <span class="status status-${kind}"><${Icon} name=${icon} size="14" /><span class="hidden">${word}</span></span></summary>
    ${open && html`<div class="fold-body"><h3>Asked</h3><${Code} text=${pretty(given)} language="json" label="What ${name} was asked" />
      ${result && html`<h3>Answered</h3><${Code} text=${prettyText(result.text)} language="json" label="What ${name} answered" />`}</div>`}
  </details>`;
}

function stateOf(result, approval) {
  if (result) return result.ok ? ["check", "finished", "done"] : ["circle-x", "failed", "refused"];
  return approval?.status === "pending" ? ["hourglass", "waiting", "waits for an answer"] : ["loader", "running", "under way"];
}

const pretty = (value) => JSON.stringify(value, null, 2);

function prettyText(text) {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text; // cut to its bounds: no longer JSON
  }
}

function brief(given) {
  const words = Object.entries(given ?? {}).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");
  return words.length > SHORT ? `${words.slice(0, SHORT)}…` : words;
}
