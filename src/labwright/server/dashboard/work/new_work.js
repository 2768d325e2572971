// Dialogs to create a run or a sweep.

import { html, signal, useRef, useState } from "../view.js";
import { newKey, post } from "../data/api.js";
import { go, runAddress, sweepAddress } from "../data/router.js";
import { mayWrite, onSignOut } from "../data/session.js";
import { Dialog } from "../ui/dialog.js";
import { hasDraft, useFormDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { HintText } from "../ui/message.js";
import { showToast } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";

export const NEW = [
  { name: "run", label: "New run", icon: "play" },
  { name: "sweep", label: "New sweep", icon: "layers" },
];

const draftOf = (name) => `new ${name}`;
// Reopen a form that was half filled when the page was reloaded.
const open = signal(NEW.find(({ name }) => hasDraft(draftOf(name)))?.name ?? "");
const close = () => (open.value = "");
onSignOut(close);
export const openNew = (name) => (open.value = name);

export function NewButton({ name }) {
  if (!mayWrite()) return null;
  return html`<button class="new-work" onClick=${() => openNew(name)}>
    <${Icon} name="plus" size="14" />
    New ${name}
  </button>`;
}

export const NewWork = () =>
  open.value === "run" ? html`<${NewRun} />` : open.value === "sweep" ? html`<${NewSweep} />` : null;

const NewRun = () =>
  html`<${Form} name="run" title="New run" verb="Start run" path="runs" bodyOf=${runOf} address=${runAddress}>
    ${(fields, onInput) =>
      html`<label class="field">
        Command
        <textarea
          rows="3"
          autofocus
          required
          spellcheck=${false}
          placeholder="python train.py --lr 0.1"
          name="command"
          value=${fields.command}
          onInput=${onInput}
        ></textarea>
      </label>
      <p class="muted small">
        Runs in a shell, in the project folder, with the server's environment.
      </p>
      <div class="new-fields">
        <label class="field">
          Name
          <input
            type="text"
            maxlength="200"
            placeholder="from the command"
            name="name"
            value=${fields.name}
            onInput=${onInput}
          />
        </label>
        <label class="field">
          GPUs
          <input type="number" min="0" placeholder="default" name="gpus" value=${fields.gpus} onInput=${onInput} />
        </label>
        <label class="field">
          Tags
          <input type="text" placeholder="baseline, cifar10" name="tags" value=${fields.tags} onInput=${onInput} />
        </label>
      </div>`}
  </${Form}>`;

function runOf({ command, name = "", gpus, tags = "" }) {
  return {
    command,
    auto_start: true,
    ...(name.trim() && { name: name.trim() }),
    ...(gpus && { gpus: Number(gpus) }),
    tags: tags
      .split(",")
      .map((tag) => tag.trim())
      .filter(Boolean),
  };
}

const NewSweep = () =>
  html`<${Form}
    name="sweep"
    title="New sweep"
    verb="Start sweep"
    path="sweeps"
    bodyOf=${sweepOf}
    address=${sweepAddress}
  >
    ${(fields, onInput) =>
      html`<label class="field">
        Name
        <input
          type="text"
          autofocus
          required
          maxlength="200"
          placeholder="which learning rate"
          name="name"
          value=${fields.name}
          onInput=${onInput}
        />
      </label>
      <label class="field">
        Command
        <textarea
          rows="2"
          required
          spellcheck=${false}
          placeholder="python train.py"
          name="command"
          value=${fields.command}
          onInput=${onInput}
        ></textarea>
      </label>
      <label class="field">
        Parameters
        <textarea
          rows="3"
          required
          spellcheck=${false}
          placeholder=${"lr: 0.1, 0.01, 0.001\nwidth: 32, 64"}
          name="parameters"
          value=${fields.parameters}
          onInput=${onInput}
        ></textarea>
      </label>
      <p class="muted small">
        Each combination becomes a run. A value replaces <code>${`{lr}`}</code> in the command, or is added as${" "}
        <code>--lr</code>.
      </p>
      <div class="new-fields">
        <label class="field">
          Seeds
          <input
            type="number"
            min="1"
            max="1000"
            placeholder="1"
            name="seeds"
            value=${fields.seeds}
            onInput=${onInput}
          />
        </label>
        <label class="field">
          Metric
          <input type="text" placeholder="val_acc" name="metric" value=${fields.metric} onInput=${onInput} />
        </label>
        <label class="field">
          Goal
          <select name="better" value=${fields.better} onChange=${onInput}>
            <option value="min">minimize</option>
            <option value="max">maximize</option>
          </select>
        </label>
        <label class="field">
          Max parallel runs
          <input
            type="number"
            min="1"
            placeholder="automatic"
            name="parallel"
            value=${fields.parallel}
            onInput=${onInput}
          />
        </label>
      </div>`}
  </${Form}>`;

function sweepOf({ name, command, parameters, seeds, metric = "", better = "min", parallel }) {
  return {
    name,
    base_command: command,
    parameters: parametersOf(parameters),
    auto_start: true,
    ...(seeds && { seeds: Number(seeds) }),
    ...(metric.trim() && { metric: { key: metric.trim(), goal: better } }),
    ...(parallel && { parallel: Number(parallel) }),
  };
}

function Form({ name, title, verb, path, bodyOf, address, children }) {
  const { fields, set, clear, drop } = useFormDraft(draftOf(name), () => openNew(name));
  const [problem, setProblem] = useState(null);
  const [busy, run] = useVerb({ onError: setProblem });
  const key = useRef(newKey());
  const onInput = ({ currentTarget: field }) => {
    set(field.name, field.value);
    setProblem(null);
    key.current = newKey();
  };
  const create = async () => {
    const made = await post(path, bodyOf(fields), key.current);
    clear();
    made.warnings?.forEach((warning) => showToast(warning));
    close();
    go(address(made.id));
  };
  const submit = (event) => {
    event.preventDefault();
    run(create, { keepBusy: true });
  };
  const cancel = () => {
    drop();
    close();
  };
  return html`<${Dialog} title=${title} onClose=${cancel}>
    <form class="stack new-form" onSubmit=${submit}>
      ${children(fields, onInput)}
      ${
        problem &&
        html`<p class="hint-line hint-bad" role="alert">
          ${problem.message}${" "}
          <span class="muted">
            <${HintText} text=${problem.hint ?? ""} />
          </span>
        </p>`
      }
      <div class="dialog-verbs">
        <button type="button" onClick=${cancel}>
          Cancel
        </button>
        <button class="primary" disabled=${busy}>
          ${verb}
        </button>
      </div>
    </form>
  </${Dialog}>`;
}

// Parse a list of values: `0.1, 0.01` are numbers, `true` is a boolean, `adam` a string.
export const valuesOf = (text) =>
  text
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean)
    .map(asValue);

function asValue(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word;
  }
}

// Parse one parameter per line: `lr: 0.1, 0.01`. Throw on a line without a name or values.
function parametersOf(lines) {
  const pairs = lines
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const [, name, values] = /^\s*([^:=]+?)\s*[:=](.*)$/.exec(line) ?? [];
      if (!name || !valuesOf(values).length)
        throw Object.assign(new Error(`The line “${line.trim()}” has no name or no values.`), {
          hint: "Write one parameter per line, for example lr: 0.1, 0.01",
        });
      return [name, valuesOf(values)];
    });
  return Object.fromEntries(pairs);
}
