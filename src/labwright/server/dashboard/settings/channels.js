// Notification channels, recent deliveries, and a form to add a channel. An address is never shown again.

import { html, useState } from "../view.js";
import { post, remove } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { isPerson } from "../data/session.js";
import { useFormDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { useVerb } from "../ui/verb.js";

const refreshOn = eventTypes("alert.", "settings.", "approval.");
const EVENTS = {
  alert: "Alerts",
  run_failed: "Failed runs",
  run_finished: "Finished runs",
  approval: "Approval requests",
};
const EMPTY = { kind: "slack", name: "", min_severity: "warning", events: ["alert"] };

export function Channels() {
  const { data, problem, refresh } = useFetched("notifications", { limit: 30 }, { refreshOn });
  const [busy, run] = useVerb({ refresh });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const drop = ({ name }) => {
    const text = "The channel is removed from labwright.toml and its address is deleted.";
    const confirm = { title: `Remove channel “${name}”?`, text, verb: "Remove channel" };
    run(() => remove(`notifications/channels/${encodeURIComponent(name)}`), { confirm, done: "Channel removed." });
  };
  const sendTest = () => run(() => post("notifications/test"), { done: "Test sent to every channel." });
  const add = (body) =>
    run(() => post("notifications/channels", body), { done: "Channel added. It receives new events from now on." });
  return html`<section class="stack" aria-label="Notifications">
    ${
      !data.channels.length &&
      html`<p class="hint-line">
        No channels. Add one below; it works at once and is saved in <code>labwright.toml</code>.
      </p>`
    }
    ${
      data.channels.length > 0 &&
      html`<div class="wide" tabindex="0" role="region" aria-label="Channels">
        <table class="grid-table">
          <thead>
            <tr>
              ${["Channel", "Kind", "Target", "Events", "Min severity", "Pending", "Problem", ""].map(
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
          <button disabled=${busy} onClick=${sendTest}>
            Send test
          </button>
        </div>`
      }`
    }
    ${
      isPerson() &&
      html`<${Add}
        busy=${busy}
        onAdd=${add}
      />`
    }
    ${
      data.deliveries.length > 0 &&
      html`<h2>Recent deliveries</h2>
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
  const [url, setUrl] = useState(""); // a secret: not part of the draft
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
  return html`<form class="card stack" aria-label="Add channel" onSubmit=${submit} autocomplete="off">
    <h2>Add channel</h2>
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
        Min severity
        <select onChange=${put("min_severity")}>
          ${options(["info", "warning", "critical"], draft.min_severity)}
        </select>
      </label>
    </div>
    <fieldset class="channel-events">
      <legend class="muted small">Events</legend>
      ${Object.entries(EVENTS).map(
        ([name, label]) =>
          html`<label key=${name}>
            <input type="checkbox" checked=${draft.events.includes(name)} onChange=${toggle(name)} /> ${label}
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
