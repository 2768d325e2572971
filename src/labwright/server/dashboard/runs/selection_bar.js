// Actions on the selected runs.

import { counted } from "../format.js";
import { html, signal, useRef, useState } from "../view.js";
import { useKeys } from "../data/keyboard.js";
import { compareAddress, go } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { actOnRun, changeRun, isTerminal, knownRun } from "../data/store.js";
import { confirmAction } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { showToast, showError } from "../ui/toast.js";

const PARALLEL_CALLS = 4;
const COMPARE_AT_MOST = 50;
export const ticked = signal(new Set());

export function tick(ids, on) {
  const next = new Set(ticked.value);
  ids.forEach((id) => (on ? next.add(id) : next.delete(id)));
  ticked.value = next;
}

export const clearTicked = () => (ticked.value = new Set());

export function SelectionBar() {
  const [busy, setBusy] = useState(false);
  const runs = [...ticked.value].map((id) => knownRun(id)?.value).filter(Boolean);
  const box = useRef(null);
  // A shortcut, because Tab would go through all rows first.
  useKeys({ ...(runs.length > 0 && { a: () => box.current.querySelector("button:enabled").focus() }) });
  if (!runs.length) return null;
  const going = runs.filter((run) => !isTerminal(run));
  const ended = runs.filter((run) => isTerminal(run) && !run.archived);

  const doAll = async (some, verb, done) => {
    setBusy(true);
    const failed = await each(some, verb);
    setBusy(false);
    showToast(`${counted(some.length - failed.length, "run")} ${done}.`);
    if (failed.length) showError(failed[0]);
  };
  const stop = async () => {
    const text = "The runs and all of their processes will be stopped. Their output and metrics are kept.";
    if (await confirmAction({ title: `Stop ${count(going)}?`, text, verb: "Stop runs" }))
      doAll(going, (run) => actOnRun(run.id, "stop"), "stopping");
  };
  const archive = () => doAll(ended, (run) => actOnRun(run.id, "archive"), "archived").then(clearTicked);

  return html`<div class="selection" ref=${box} role="toolbar" aria-label="Selected runs">
    <strong class="num">${count(runs)}</strong>
    <button
      class="primary"
      disabled=${runs.length > COMPARE_AT_MOST}
      title=${runs.length > COMPARE_AT_MOST ? `Select at most ${COMPARE_AT_MOST} runs` : undefined}
      onClick=${() => go(compareAddress(runs.map(({ id }) => id)))}
    >
      <${Icon} name="git-compare" size="14" />
      Compare
    </button>
    ${
      mayWrite() &&
      html`<button class="danger" disabled=${busy || !going.length} onClick=${stop}>
        <${Icon} name="square" size="14" />
        Stop
      </button>
      <button disabled=${busy} onClick=${() => doAll(runs, (run) => actOnRun(run.id, "rerun"), "started again")}>
        <${Icon} name="rotate-cw" size="14" />
        Rerun
      </button>
      <button disabled=${busy || !ended.length} onClick=${archive}>
        <${Icon} name="archive" size="14" />
        Archive
      </button>
      <${TagMenu} runs=${runs} doAll=${doAll} />`
    }
    <button class="bare" onClick=${clearTicked}>
      Clear
    </button>
  </div>`;
}

const count = (runs) => counted(runs.length, "run");

function TagMenu({ runs, doAll }) {
  const [text, setText] = useState("");
  const tags = [...new Set(runs.flatMap((run) => run.tags))].sort();
  const add = (event) => {
    event.preventDefault();
    const tag = text.trim();
    if (tag) doAll(runs, (run) => changeRun(run.id, { tags: [...new Set([...run.tags, tag])] }), `tagged ${tag}`);
    setText("");
  };
  const drop = (tag) =>
    doAll(
      runs.filter((run) => run.tags.includes(tag)),
      (run) => changeRun(run.id, { tags: run.tags.filter((other) => other !== tag) }),
      `untagged ${tag}`,
    );
  return html`<${Menu} label="Tag" icon="tag">
    <form class="menu-form" onSubmit=${add}>
      <input
        type="text"
        placeholder="Tag name"
        aria-label="Tag"
        value=${text}
        maxlength="100"
        onInput=${(event) => setText(event.currentTarget.value)}
      />
      <button>Add tag</button>
    </form>
    ${tags.map(
      (tag) =>
        html`<div class="menu-row" key=${tag}>
          <span class="tag">${tag}</span>
          <button class="bare" aria-label="Remove tag ${tag}" onClick=${() => drop(tag)}>
            <${Icon} name="x" size="12" />
          </button>
        </div>`,
    )}
  </${Menu}>`;
}

// Call the verb for a few runs at a time. Return the errors.
async function each(runs, verb) {
  const todo = [...runs];
  const failed = [];
  const work = async () => {
    for (let run = todo.shift(); run; run = todo.shift()) await verb(run).catch((error) => failed.push(error));
  };
  await Promise.all(Array.from({ length: PARALLEL_CALLS }, work));
  return failed;
}
