// The settings page: models, limits, notifications, storage, all settings, this browser.

import { bytes, text } from "../format.js";
import { html, useState } from "../view.js";
import { post } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { notificationState, setNotifications } from "../data/notifications.js";
import { isPerson, scope } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Tabs } from "../ui/tabs.js";
import { useVerb } from "../ui/verb.js";
import { Channels } from "./channels.js";
import { GROUPS, SettingsForm } from "./form.js";
import { ModelSettings } from "./models.js";

export default function SettingsPage() {
  useTitle("Settings");
  const { data, problem, refresh } = useFetched("settings", {}, { refreshOn: eventTypes("settings.") });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return waiting;
  const tabs = [
    { name: "models", label: "Models", show: () => html`<${ModelSettings} settings=${data} refresh=${refresh} />` },
    {
      name: "limits",
      label: "Limits",
      show: () => html`<${SettingsForm} help=${GROUPS.limits} settings=${data} refresh=${refresh} label="Limits" />`,
    },
    { name: "notifications", label: "Notifications", show: () => html`<${Channels} />` },
    { name: "storage", label: "Storage", show: () => html`<${Storage} />` },
    { name: "server", label: "All settings", show: () => html`<${Server} data=${data} />` },
    { name: "browser", label: "This browser", show: () => html`<${ThisBrowser} />` },
  ];
  const later = data.filter(({ value, following }) => value !== following).map(({ name }) => name);
  return html`<div class="page run-page">
    <h1>Settings</h1>
    ${
      later.length > 0 &&
      html`<p class="hint-line">
        <${Icon} name="rotate-cw" size="14" /> <strong>${later.join(", ")}</strong> takes effect after a restart:${" "}
        <code>labwright down && labwright up -d</code>. Runs continue.
      </p>`
    }
    <${Tabs} tabs=${tabs} label="Settings" />
  </div>`;
}

const waiting = html`<div class="loading" aria-busy="true"></div>`;

function Server({ data }) {
  const who = useFetched("whoami");
  return html`<section class="stack" aria-label="Server">
    ${
      who.data &&
      html`<p class="muted">
        Labwright ${who.data.version} for <code>${who.data.project}</code>. You are signed in as ${who.data.scope}.
      </p>`
    }
    <p class="hint-line">
      The order is: environment variable <code>LABWRIGHT_NAME</code>, <code>labwright.toml</code> in the project folder,
      default.
    </p>
    <div class="wide" tabindex="0" role="region" aria-label="All settings">
      <table class="grid-table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Default</th>
            <th scope="col" class="num">
              Range
            </th>
          </tr>
        </thead>
        <tbody>
          ${data.map(
            (one) =>
              html`<tr key=${one.name} class=${one.value === one.default ? "" : "differs"}>
                <th scope="row">
                  <code>${one.name}</code>
                </th>
                <td>${shown(one.value)}</td>
                <td class="muted">${shown(one.default)}</td>
                <td class="num muted">${one.bounds ? `${one.bounds[0]} – ${one.bounds[1]}` : ""}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

const shown = (value) => (value === "" ? html`<span class="muted">empty</span>` : text(value));

function Storage() {
  const [freed, setFreed] = useState(null);
  const { data, problem, refresh } = useFetched("storage");
  const [busy, run] = useVerb({ refresh });
  const estimate = () => run(async () => setFreed(await post("gc", { dry_run: true })));
  const collect = () => {
    const text = `${freed.logs_removed} logs and ${freed.runs_deleted} archived runs will be deleted permanently.`;
    const confirm = { title: `Free ${bytes(freed.freed_bytes)}?`, text, verb: "Free space" };
    run(() => post("gc", {}).then(() => setFreed(null)), { confirm, done: "Space freed." });
  };
  const backUp = () => run(() => post("backup"), { done: ({ path }) => `Backup written to ${path}.` });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return waiting;
  return html`<section class="stack" aria-label="Storage">
    <table class="pairs storage">
      <tbody>
        ${Object.entries(data)
          .filter(([, size]) => typeof size === "number")
          .map(
            ([name, size]) =>
              html`<tr key=${name}>
                <th scope="row">${name.replaceAll("_", " ").replace(" bytes", "")}</th>
                <td class="num" title="${size} bytes">
                  ${bytes(size)}
                </td>
              </tr>`,
          )}
      </tbody>
    </table>
    ${
      isPerson() &&
      html`<div class="verbs verbs-left">
        <button disabled=${busy} onClick=${estimate}>Estimate free space</button>
        <button disabled=${busy} onClick=${backUp}>Back up now</button>
      </div>`
    }
    ${
      freed &&
      html`<p>
        ${
          freed.freed_bytes
            ? html`${bytes(freed.freed_bytes)} in ${freed.logs_removed} logs and ${freed.runs_deleted} archived${" "}
            runs.${" "}
            <button disabled=${busy} onClick=${collect}>Free space</button>`
            : "Nothing to free with the current retention settings."
        }
      </p>`
    }
  </section>`;
}

function ThisBrowser() {
  const labels = {
    on: "on",
    off: "off",
    refused: "blocked. Allow notifications for this address in the browser's settings.",
    impossible: "not available. The browser allows them only over HTTPS or on localhost.",
  };
  const state = notificationState.value;
  return html`<section class="stack" aria-label="This browser">
    <h2>Notifications</h2>
    <p>
      Notify me about failed runs, alerts and approvals while this window is hidden:${" "}
      <strong>${labels[state]}</strong>
    </p>
    ${
      (state === "on" || state === "off") &&
      html`<div>
        <button onClick=${() => setNotifications(state === "off")}>
          <${Icon} name="bell" size="14" />
          ${state === "off" ? "Turn on notifications" : "Turn off notifications"}
        </button>
      </div>`
    }
    <h2>Stored data</h2>
    <p class="muted">
      This browser stores the token (scope ${scope.value || "unknown"}) and chart options; this tab stores unsaved text.
      Signing out deletes the token and unsaved text.
    </p>
  </section>`;
}
