// What can be done with a run now. What cannot be undone is asked about first.

import { askAddress, go, runAddress } from "../data/router.js";
import { isPerson, mayWrite } from "../data/session.js";
import { actOnRun, changeRun, deleteRun, isTerminal } from "../data/store.js";
import { html, useState } from "../view.js";
import { ask, TextDialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { say, sayError } from "../ui/toast.js";

export function RunVerbs({ run }) {
  const [busy, setBusy] = useState(false);
  const [editing, setEditing] = useState("");
  const doing = async (work) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
  const act = (verb, then, body) => doing(async () => then(await actOnRun(run.id, verb, body)));
  const stop = async () => {
    const text = "It and everything it started will be ended. What it wrote and logged so far stays.";
    if (await ask({ title: `Stop “${run.name}”?`, text, verb: "Stop run" }))
      act("stop", () => say(`Stopping “${run.name}”.`));
  };
  const rerun = (body) =>
    act(
      "rerun",
      (made) => (setEditing(""), say(`Started “${run.name}” again as a new run.`), go(runAddress(made.id))),
      body,
    );
  const archive = () =>
    act("archive", () => say(`Archived “${run.name}”.`, { action: { label: "Undo", run: unarchive } }));
  const unarchive = () => act("unarchive", () => say(`“${run.name}” is back in the list.`));
  const drop = async () => {
    const text =
      "Its output, metrics and files go with it. This cannot be undone; archiving only takes it out of the list.";
    if (await ask({ title: `Delete “${run.name}”?`, text, verb: "Delete run" }))
      doing(async () => (await deleteRun(run.id), say(`Deleted “${run.name}”.`), go("#/runs")));
  };
  const rename = (name) => doing(async () => (await changeRun(run.id, { name }), setEditing("")));

  if (!mayWrite() || run.deleted) return null;
  const ended = isTerminal(run);
  return html`<div class="verbs" role="group" aria-label="What to do with this run">
    ${
      run.status === "ready" &&
      html`<button class="primary" disabled=${busy} onClick=${() => act("start", () => say(`Queued “${run.name}”.`))}>
        <${Icon} name="play" size="14" />
        Start
      </button>`
    }
    ${
      !ended &&
      html`<button class="danger" disabled=${busy} onClick=${stop}>
        <${Icon} name="square" size="14" />
        Stop run
      </button>`
    }
    <button disabled=${busy} onClick=${() => rerun()}>
      <${Icon} name="rotate-cw" size="14" />
      Rerun
    </button>
    ${
      ended &&
      !run.archived &&
      html`<button disabled=${busy} onClick=${archive}>
        <${Icon} name="archive" size="14" />
        Archive
      </button>`
    }
    ${
      run.archived &&
      html`<button disabled=${busy} onClick=${unarchive}>
        <${Icon} name="archive" size="14" />
        Unarchive
      </button>`
    }
    <${Menu} label="More" icon="ellipsis">
      ${(close) =>
        html`<a class="menu-item button" href=${askAddress(run.id)}>
          <${Icon} name="message-square" size="14" />
          Ask about this run
        </a>
        <button class="menu-item" onClick=${() => (close(), setEditing("command"))}>
          <${Icon} name="rotate-cw" size="14" />
          Rerun with another command…
        </button>
        <button class="menu-item" onClick=${() => (close(), setEditing("name"))}>
          <${Icon} name="pencil" size="14" />
          Rename…
        </button>
        ${
          ended &&
          isPerson() &&
          html`<button class="menu-item danger" onClick=${() => (close(), drop())}>
            <${Icon} name="trash" size="14" />
            Delete run…
          </button>`
        }`}
    </${Menu}>
    ${
      editing === "command" &&
      html`<${TextDialog}
        title="Rerun with another command"
        label="Command"
        text=${run.command}
        verb="Rerun"
        onClose=${() => setEditing("")}
        onSave=${(command) => busy || rerun({ command })}
      />`
    }
    ${
      editing === "name" &&
      html`<${TextDialog}
        title="Rename the run"
        label="Name"
        text=${run.name}
        verb="Rename"
        short
        onClose=${() => setEditing("")}
        onSave=${rename}
      />`
    }
  </div>`;
}
