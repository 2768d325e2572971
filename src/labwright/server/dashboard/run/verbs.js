// The actions of a run. Actions that cannot be undone ask first.

import { html, useState } from "../view.js";
import { askAddress, go, runAddress } from "../data/router.js";
import { isPerson, mayWrite } from "../data/session.js";
import { actOnRun, changeRun, deleteRun, isTerminal } from "../data/store.js";
import { TextDialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { showToast } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";

export function RunVerbs({ run }) {
  const [busy, act] = useVerb();
  const [editing, setEditing] = useState("");
  const start = () => act(() => actOnRun(run.id, "start"), { done: `Queued “${run.name}”.` });
  const stop = () => {
    const text = "The run and all of its processes will be stopped. Its output and metrics are kept.";
    const confirm = { title: `Stop “${run.name}”?`, text, verb: "Stop run" };
    act(() => actOnRun(run.id, "stop"), { confirm, done: `Stopping “${run.name}”.` });
  };
  const rerun = (body) =>
    act(
      async () => {
        const made = await actOnRun(run.id, "rerun", body);
        setEditing("");
        go(runAddress(made.id));
      },
      { done: `Started “${run.name}” again as a new run.` },
    );
  const archive = () =>
    act(async () => {
      await actOnRun(run.id, "archive");
      showToast(`Archived “${run.name}”.`, { action: { label: "Undo", run: unarchive } });
    });
  const unarchive = () => act(() => actOnRun(run.id, "unarchive"), { done: `Unarchived “${run.name}”.` });
  const drop = () => {
    const text = "Its output, metrics and files are deleted. This cannot be undone. Archiving only hides the run.";
    const confirm = { title: `Delete “${run.name}”?`, text, verb: "Delete run" };
    act(() => deleteRun(run.id).then(() => go("#/runs")), { confirm, done: `Deleted “${run.name}”.` });
  };
  const rename = (name) => act(() => changeRun(run.id, { name }).then(() => setEditing("")));

  if (!mayWrite() || run.deleted) return null;
  const ended = isTerminal(run);
  return html`<div class="verbs" role="group" aria-label="Run actions">
    ${
      run.status === "ready" &&
      html`<button class="primary" disabled=${busy} onClick=${start}>
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
        title="Rename run"
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
