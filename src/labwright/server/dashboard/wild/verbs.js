// The actions of a loop.

import { html, useState } from "../view.js";
import { post } from "../data/api.js";
import { isPerson, mayWrite } from "../data/session.js";
import { Dialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { useVerb } from "../ui/verb.js";
import { BudgetFields, budgetOf } from "./budget.js";

const ENDED = new Set(["completed", "stopped", "failed"]);
export const isEnded = (wild) => ENDED.has(wild.status);

export function WildVerbs({ wild, refresh }) {
  const [busy, run] = useVerb({ refresh });
  const [editing, setEditing] = useState(false);
  const act = (verb, options, body) => run(() => post(`wild/${encodeURIComponent(wild.id)}/${verb}`, body), options);
  const stop = () => {
    const text = "The loop and all of its runs will be stopped. A report of the results so far is written.";
    act("stop", { confirm: { title: "Stop this loop?", text, verb: "Stop loop" }, done: "Loop stopped." });
  };
  const resume = async (budget) => {
    if (await act("resume", { done: "Loop resumed with the new budget." }, { budget })) setEditing(false);
  };
  if (!mayWrite() || isEnded(wild)) return null;
  const isPaused = wild.status === "paused";
  return html`<div class="verbs" role="group" aria-label="Loop actions">
    ${
      isPaused
        ? html`<button class="primary" disabled=${busy} onClick=${() => act("resume", { done: "Loop resumed." })}>
          <${Icon} name="play" size="14" />
          Resume
        </button>
        ${
          isPerson() &&
          html`<button disabled=${busy} onClick=${() => setEditing(true)}>
            Change budget…
          </button>`
        }`
        : html`<button disabled=${busy} onClick=${() => act("pause", { done: "Loop paused. Running runs continue." })}>
          <${Icon} name="pause" size="14" />
          Pause
        </button>`
    }
    <button class="danger" disabled=${busy} onClick=${stop}>
      <${Icon} name="square" size="14" />
      Stop loop
    </button>
    ${
      editing &&
      html`<${BudgetDialog}
        wild=${wild}
        busy=${busy}
        onClose=${() => setEditing(false)}
        onSave=${resume}
      />`
    }
  </div>`;
}

function BudgetDialog({ wild, busy, onSave, onClose }) {
  const { runs, gpu_hours: hours, wall_seconds: wall } = wild.budget;
  const [draft, setDraft] = useState({
    runs: runs ?? "",
    gpu_hours: hours ?? "",
    wall_seconds: wall ? wall / 3600 : "",
  });
  const submit = (event) => {
    event.preventDefault();
    onSave(budgetOf(draft));
  };
  return html`<${Dialog} title="Change budget" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p class="muted">Totals, including what is already used.</p>
      <${BudgetFields} value=${draft} onChange=${setDraft} />
      <div class="dialog-verbs">
        <button type="button" onClick=${onClose}>
          Cancel
        </button>
        <button class="primary" disabled=${busy}>
          Resume
        </button>
      </div>
    </form>
  </${Dialog}>`;
}
