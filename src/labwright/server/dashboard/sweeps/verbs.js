// The actions of a sweep.

import { counted, text } from "../format.js";
import { html, useState } from "../view.js";
import { post } from "../data/api.js";
import { mayWrite } from "../data/session.js";
import { Dialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { useVerb } from "../ui/verb.js";
import { valuesOf } from "../work/new_work.js";

export function SweepVerbs({ sweep, refresh }) {
  const [busy, run] = useVerb({ refresh });
  const [extending, setExtending] = useState(false);
  const act = (verb, options, body) => run(() => post(`sweeps/${encodeURIComponent(sweep.id)}/${verb}`, body), options);
  const stop = () => {
    const text = "The sweep and all of its runs will be stopped. Their output and metrics are kept.";
    const confirm = { title: `Stop “${sweep.name}”?`, text, verb: "Stop sweep" };
    act("stop", { confirm, done: "Stopping the sweep." });
  };
  const extend = async (body) => {
    if (await act("extend", { done: extendedText }, body)) setExtending(false);
  };
  if (!mayWrite()) return null;
  const { status, to_retry: broken } = sweep;
  const isOpen = status === "running" || status === "paused";
  const button = (verb, icon, label, done, kind = "") =>
    html`<button class=${kind} disabled=${busy} onClick=${() => act(verb, { done })}>
      <${Icon} name=${icon} size="14" />
      ${label}
    </button>`;
  return html`<div class="verbs" role="group" aria-label="Sweep actions">
    ${status === "draft" && button("start", "play", "Start", "Sweep started.", "primary")}
    ${status === "running" && button("pause", "pause", "Pause", "Sweep paused. Running runs continue.")}
    ${status === "paused" && button("resume", "play", "Resume", "Sweep resumed.", "primary")}
    ${
      broken > 0 &&
      status !== "stopped" &&
      button("retry-failed", "rotate-cw", `Retry ${broken} failed`, ({ added }) => `${counted(added, "new run")}.`)
    }
    ${
      sweep.method !== "wild" &&
      status !== "stopped" &&
      html`<button disabled=${busy} onClick=${() => setExtending(true)}>
        <${Icon} name="plus" size="14" />
        Extend…
      </button>`
    }
    ${
      (isOpen || status === "draft") &&
      html`<button class="danger" disabled=${busy} onClick=${stop}>
        <${Icon} name="square" size="14" />
        Stop sweep
      </button>`
    }
    ${
      extending &&
      html`<${Extend}
        sweep=${sweep}
        busy=${busy}
        onClose=${() => setExtending(false)}
        onSave=${extend}
      />`
    }
  </div>`;
}

const extendedText = ({ added, already }) =>
  `${counted(added, "new run")}${already ? `; ${already} already existed` : ""}.`;

// More values, seeds or runs. Empty fields change nothing.
function Extend({ sweep, busy, onSave, onClose }) {
  const [draft, setDraft] = useState({ values: {}, seeds: "", runs: "" });
  const lists = Object.entries(sweep.parameters)
    .map(([name, value]) => [name, Array.isArray(value) ? value : value?.values])
    .filter(([, tried]) => Array.isArray(tried));
  const values = Object.entries(draft.values)
    .filter(([, typed]) => typed.trim())
    .map(([name, typed]) => [name, valuesOf(typed)]);
  const body = {
    ...(values.length && { parameters: Object.fromEntries(values) }),
    ...(draft.seeds && { seeds: Number(draft.seeds) }),
    ...(draft.runs && { max_runs: Number(draft.runs) }),
  };
  const submit = (event) => {
    event.preventDefault();
    onSave(body);
  };
  const setValue = (name) => (event) =>
    setDraft({ ...draft, values: { ...draft.values, [name]: event.currentTarget.value } });
  return html`<${Dialog} title="Extend sweep" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p class="muted">Existing runs are not repeated.</p>
      ${lists.map(
        ([name, tried]) =>
          html`<label class="field" key=${name}>
            More values for ${name}
            <input
              type="text"
              placeholder="current: ${tried.map(text).join(", ")}"
              value=${draft.values[name] ?? ""}
              onInput=${setValue(name)}
            />
          </label>`,
      )}
      ${
        sweep.seeds.length > 0 &&
        html`<label class="field">
          Total seeds
          <input
            type="number"
            min="1"
            max="1000"
            placeholder=${sweep.seeds.length}
            value=${draft.seeds}
            onInput=${(event) => setDraft({ ...draft, seeds: event.currentTarget.value })}
          />
        </label>`
      }
      ${
        sweep.max_runs !== null &&
        html`<label class="field">
          Max runs
          <input
            type="number"
            min="1"
            placeholder=${sweep.max_runs}
            value=${draft.runs}
            onInput=${(event) => setDraft({ ...draft, runs: event.currentTarget.value })}
          />
        </label>`
      }
      <div class="dialog-verbs">
        <button type="button" onClick=${onClose}>
          Cancel
        </button>
        <button class="primary" disabled=${busy || !Object.keys(body).length}>
          Extend sweep
        </button>
      </div>
    </form>
  </${Dialog}>`;
}
