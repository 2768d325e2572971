// What can be done with a sweep now.

import { post } from "../data/api.js";
import { mayWrite } from "../data/session.js";
import { counted, text } from "../format.js";
import { html, useState } from "../view.js";
import { ask, Dialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { say, sayError } from "../ui/toast.js";
import { valuesOf } from "../work/new_work.js";

export function SweepVerbs({ sweep, refresh }) {
  const [busy, setBusy] = useState(false);
  const [extending, setExtending] = useState(false);
  const act = async (verb, words, body) => {
    setBusy(true);
    try {
      const answer = await post(`sweeps/${encodeURIComponent(sweep.id)}/${verb}`, body);
      say(words(answer));
      refresh();
      setExtending(false);
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
  const stop = async () => {
    const text = "It and all of its runs will be ended. What they logged so far stays.";
    if (await ask({ title: `Stop “${sweep.name}”?`, text, verb: "Stop sweep" }))
      act("stop", () => "Stopping the sweep.");
  };
  if (!mayWrite()) return null;
  const { status, to_retry: broken } = sweep;
  const isOpen = status === "running" || status === "paused";
  const button = (verb, icon, label, words, kind = "") =>
    html`<button class=${kind} disabled=${busy} onClick=${() => act(verb, words)}>
      <${Icon} name=${icon} size="14" />
      ${label}
    </button>`;
  return html`<div class="verbs" role="group" aria-label="What to do with this sweep">
    ${status === "draft" && button("start", "play", "Start", () => "Started.", "primary")}
    ${status === "running" && button("pause", "pause", "Pause", () => "Nothing new begins; what runs goes on.")}
    ${status === "paused" && button("resume", "play", "Resume", () => "It goes on.", "primary")}
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
        onSave=${(body) =>
          act(
            "extend",
            ({ added, already }) =>
              `${counted(added, "new run")}${already ? `, ${counted(already, "was", "were")} there already` : ""}.`,
            body,
          )}
      />`
    }
  </div>`;
}

// More values of a list, more seeds, more runs: whatever is left empty stays as it is.
function Extend({ sweep, busy, onSave, onClose }) {
  const [draft, setDraft] = useState({ values: {}, seeds: "", runs: "" });
  const lists = Object.entries(sweep.parameters)
    .map(([name, value]) => [name, Array.isArray(value) ? value : value?.values])
    .filter(([, tried]) => Array.isArray(tried));
  const values = Object.entries(draft.values)
    .filter(([, words]) => words.trim())
    .map(([name, words]) => [name, valuesOf(words)]);
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
  return html`<${Dialog} title="Extend the sweep" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p class="muted">What is done already is not repeated.</p>
      ${lists.map(
        ([name, tried]) =>
          html`<label class="field" key=${name}>
            More values of ${name}
            <input
              type="text"
              placeholder="beside ${tried.map(text).join(", ")}"
              value=${draft.values[name] ?? ""}
              onInput=${setValue(name)}
            />
          </label>`,
      )}
      ${
        sweep.seeds.length > 0 &&
        html`<label class="field">
          Seeds in all
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
          Runs at most
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
