// What can be done with a run now. What cannot be undone is asked about first.

import { go, runAddress } from "../router.js";
import { actOnRun, isTerminal } from "../store.js";
import { html, useState } from "../ui.js";
import { ask } from "./confirm.js";
import { Icon } from "./icon.js";
import { say, sayError } from "./toast.js";

export function RunVerbs({ run }) {
  const [busy, setBusy] = useState(false);
  const act = async (verb, then) => {
    setBusy(true);
    try {
      then(await actOnRun(run.id, verb));
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
  const stop = async () => {
    const text = "It and everything it started will be ended. What it wrote and logged so far stays.";
    if (await ask({ title: `Stop “${run.name}”?`, text, verb: "Stop run" })) act("stop", () => say("Stopping the run."));
  };
  const rerun = () => act("rerun", (made) => (say("Started again as a new run."), go(runAddress(made.id))));
  const archive = () => act("archive", () => say("Archived.", { action: { label: "Undo", run: unarchive } }));
  const unarchive = () => act("unarchive", () => say("Back in the list."));

  const ended = isTerminal(run);
  return html`<div class="verbs" role="group" aria-label="What to do with this run">
    ${run.status === "ready" && html`<button class="primary" disabled=${busy} onClick=${() => act("start", () => say("Queued."))}>
      <${Icon} name="play" size="14" />Start</button>`}
    ${!ended && html`<button class="danger" disabled=${busy} onClick=${stop}><${Icon} name="square" size="14" />Stop run</button>`}
    <button disabled=${busy} onClick=${rerun}><${Icon} name="rotate-cw" size="14" />Rerun</button>
    ${ended && !run.archived && html`<button disabled=${busy} onClick=${archive}><${Icon} name="archive" size="14" />Archive</button>`}
    ${run.archived && html`<button disabled=${busy} onClick=${unarchive}><${Icon} name="archive" size="14" />Unarchive</button>`}
  </div>`;
}
