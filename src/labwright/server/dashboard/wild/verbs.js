// What can be done with a loop now.

import { post } from "../data/api.js";
import { isPerson, mayWrite } from "../data/session.js";
import { html, useState } from "../view.js";
import { ask, Dialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { say, sayError } from "../ui/toast.js";
import { BudgetFields, budgetOf } from "./budget.js";

const ENDED = new Set(["completed", "stopped", "failed"]);
export const isEnded = (wild) => ENDED.has(wild.status);

export function WildVerbs({ wild, refresh }) {
  const [busy, setBusy] = useState(false);
  const [raising, setRaising] = useState(false);
  const act = async (verb, words, body) => {
    setBusy(true);
    try {
      await post(`wild/${encodeURIComponent(wild.id)}/${verb}`, body);
      say(words);
      setRaising(false);
      refresh();
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
  const stop = async () => {
    const text = "It and all of its runs will be ended. The report says what was found until now.";
    if (await ask({ title: "Stop this loop?", text, verb: "Stop loop" })) act("stop", "Stopped.");
  };
  if (!mayWrite() || isEnded(wild)) return null;
  const isPaused = wild.status === "paused";
  return html`<div class="verbs" role="group" aria-label="What to do with this loop">
    ${
      isPaused
        ? html`<button class="primary" disabled=${busy} onClick=${() => act("resume", "It goes on.")}>
          <${Icon} name="play" size="14" />
          Resume
        </button>
        ${
          isPerson() &&
          html`<button disabled=${busy} onClick=${() => setRaising(true)}>
            Change budget…
          </button>`
        }`
        : html`<button disabled=${busy} onClick=${() => act("pause", "Nothing new begins; what runs goes on.")}>
          <${Icon} name="pause" size="14" />
          Pause
        </button>`
    }
    <button class="danger" disabled=${busy} onClick=${stop}>
      <${Icon} name="square" size="14" />
      Stop loop
    </button>
    ${
      raising &&
      html`<${Raise}
        wild=${wild}
        busy=${busy}
        onClose=${() => setRaising(false)}
        onSave=${(budget) => act("resume", "It goes on with the new budget.", { budget })}
      />`
    }
  </div>`;
}

function Raise({ wild, busy, onSave, onClose }) {
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
  return html`<${Dialog} title="Change the budget and go on" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p class="muted">In all, with what was used already.</p>
      <${BudgetFields} value=${draft} onChange=${setDraft} />
      <div class="dialog-verbs">
        <button type="button" onClick=${onClose}>
          Cancel
        </button>
        <button class="primary" disabled=${busy}>
          Go on
        </button>
      </div>
    </form>
  </${Dialog}>`;
}
