// Where news goes outside of this page: channels, what was sent, and how to add one. An address goes in and never comes out.

import { post, remove } from "../data/api.js";
import { useFormDraft } from "../ui/drafts.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { isPerson } from "../data/session.js";
import { html, useState } from "../view.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { say, sayError } from "../ui/toast.js";

const wakes = wakesOn("alert.", "settings.", "approval.");
const EVENTS = {
  alert: "an alert",
  run_failed: "a run that failed",
  run_finished: "a run that finished",
  approval: "an agent that asks",
};
const EMPTY = { kind: "slack", name: "", min_severity: "warning", events: ["alert"] };

export function Channels() {
  const [busy, setBusy] = useState(false);
  const { data, problem, refresh } = useFetched("notifications", { limit: 30 }, { wakes });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const act = async (work, words) => {
    setBusy(true);
    try {
      await work();
      say(words);
      refresh();
      return true;
    } catch (error) {
      sayError(error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const drop = async ({ name }) => {
    const text = "It is taken out of labwright.toml, and its address is forgotten.";
    if (await ask({ title: `Remove the channel “${name}”?`, text, verb: "Remove channel" }))
      act(() => remove(`notifications/channels/${encodeURIComponent(name)}`), "Removed.");
  };
  return html`<section class="stack" aria-label="Notifications">
    ${
      !data.channels.length &&
      html`<p class="hint-line">
        No channel is set up. Add one below; it works at once and stands in <code>labwright.toml</code>.
      </p>`
    }
    ${
      data.channels.length > 0 &&
      html`<div class="wide" tabindex="0" role="region" aria-label="Channels">
        <table class="grid-table">
          <thead>
            <tr>
              ${["Channel", "Kind", "Goes to", "Told of", "From severity", "Waiting", "", ""].map(
                (name) => html`<th scope="col">${name}</th>`,
              )}
            </tr>
          </thead>
          <tbody>
            ${data.channels.map(
              (one) =>
                html`<tr key=${one.name}>
                  <th scope="row">${one.name}</th>
                  <td>${one.kind}</td>
                  <td>${one.target}</td>
                  <td>${one.events.join(", ").replaceAll("_", " ")}</td>
                  <td>${one.min_severity}</td>
                  <td class="num">${one.waiting}</td>
                  <td>${one.problem}</td>
                  <td>
                    ${
                      isPerson() &&
                      html`<button
                        class="bare"
                        aria-label="Remove ${one.name}"
                        disabled=${busy}
                        onClick=${() => drop(one)}
                      >
                        <${Icon} name="trash" size="14" />
                      </button>`
                    }
                  </td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${
        isPerson() &&
        html`<div>
          <button disabled=${busy} onClick=${() => act(() => post("notifications/test"), "Sent to every channel.")}>
            Send a test
          </button>
        </div>`
      }`
    }
    ${
      isPerson() &&
      html`<${Add}
        busy=${busy}
        onAdd=${(body) => act(() => post("notifications/channels", body), "Added. It is told what happens from now on.")}
      />`
    }
    ${
      data.deliveries.length > 0 &&
      html`<h2>Sent last</h2>
      <div class="wide" tabindex="0" role="region" aria-label="Deliveries">
        <table class="grid-table">
          <tbody>
            ${data.deliveries.map(
              (one) =>
                html`<tr key=${one.id}>
                  <td>${one.channel}</td>
                  <td>${one.title}</td>
                  <td>${one.status.replaceAll("_", " ")}</td>
                  <td>${one.error}</td>
                  <td class="muted">
                    <${Ago} time=${one.created_at} />
                  </td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>`
    }
  </section>`;
}

function Add({ busy, onAdd }) {
  const { fields, set, clear, drop } = useFormDraft("new channel");
  const [url, setUrl] = useState(""); // a secret: in no draft
  const draft = { ...EMPTY, ...fields };
  const put = (name) => (event) => set(name, event.currentTarget.value, EMPTY[name]);
  const toggle = (name) => () =>
    set(
      "events",
      draft.events.includes(name) ? draft.events.filter((one) => one !== name) : [...draft.events, name],
      EMPTY.events,
    );
  const leave = (how) => (how(), setUrl(""));
  const needsUrl = draft.kind !== "desktop";
  const submit = async (event) => {
    event.preventDefault();
    const { name, ...rest } = draft;
    if (await onAdd({ ...rest, ...(name.trim() && { name: name.trim() }), ...(needsUrl && { url: url.trim() }) }))
      leave(clear);
  };
  const options = (names, chosen) =>
    names.map(
      (name) =>
        html`<option value=${name} selected=${name === chosen}>
          ${name}
        </option>`,
    );
  return html`<form class="card stack" aria-label="Add a channel" onSubmit=${submit} autocomplete="off">
    <h2>Add a channel</h2>
    <div class="by-hand">
      <label class="field">
        Kind<select onChange=${put("kind")}>${options(["slack", "webhook", "desktop"], draft.kind)}</select>
      </label>
      ${
        needsUrl &&
        html`<label class="field channel-url">
          Address
          <input
            type="password"
            placeholder="https://hooks.slack.com/…"
            autocomplete="off"
            maxlength="2000"
            value=${url}
            onInput=${(event) => setUrl(event.currentTarget.value)}
          />
        </label>`
      }
      <label class="field">
        Name
        <input type="text" placeholder=${draft.kind} maxlength="40" value=${draft.name} onInput=${put("name")} />
      </label>
      <label class="field">
        Alerts from
        <select onChange=${put("min_severity")}>
          ${options(["info", "warning", "critical"], draft.min_severity)}
        </select>
      </label>
    </div>
    <fieldset class="channel-events">
      <legend class="muted small">Told of</legend>
      ${Object.entries(EVENTS).map(
        ([name, words]) =>
          html`<label key=${name}>
            <input type="checkbox" checked=${draft.events.includes(name)} onChange=${toggle(name)} /> ${words}
          </label>`,
      )}
    </fieldset>
    <div class="verbs verbs-left">
      <button class="primary" disabled=${busy || !draft.events.length || (needsUrl && !url.trim())}>
        Add channel
      </button>
      ${
        Object.keys(fields).length > 0 &&
        html`<button type="button" onClick=${() => leave(drop)}>
          Discard
        </button>`
      }
    </div>
  </form>`;
}
