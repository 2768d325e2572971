// How this server is set up, where news goes, what the state folder takes, and what this browser does.

import { post } from "../data/api.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { noticesAre, setNotices } from "../data/notices.js";
import { isPerson, scope } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { bytes, text } from "../format.js";
import { Channels } from "./channels.js";
import { GROUPS, SettingsForm } from "./form.js";
import { ModelSettings } from "./models.js";
import { html, useState } from "../view.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Tabs } from "../ui/tabs.js";
import { say, sayError } from "../ui/toast.js";

export default function SettingsPage() {
  useTitle("Settings");
  const { data, problem, refresh } = useFetched("settings", {}, { wakes: wakesOn("settings.") });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return waiting;
  const tabs = [
    { name: "models", label: "Models", show: () => html`<${ModelSettings} settings=${data} refresh=${refresh} />` },
    {
      name: "limits",
      label: "Limits",
      show: () => html`<${SettingsForm} words=${GROUPS.limits} settings=${data} refresh=${refresh} label="Limits" />`,
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
        <${Icon} name="rotate-cw" size="14" /> <strong>${later.join(", ")}</strong> will hold after${" "}
        <code>labwright down</code> and <code>labwright up -d</code>; runs go on meanwhile.
      </p>`
    }
    <${Tabs} tabs=${tabs} label="Kinds of settings" />
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
      A variable <code>LABWRIGHT_NAME</code> of the server's environment, else <code>labwright.toml</code> in the
      project's folder, else the default.
    </p>
    <div class="wide" tabindex="0" role="region" aria-label="All settings">
      <table class="grid-table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Default</th>
            <th scope="col" class="num">
              Bounds
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
  const act = async (work) => {
    try {
      await work();
      refresh();
    } catch (error) {
      sayError(error);
    }
  };
  const look = () => act(async () => setFreed(await post("gc", { dry_run: true })));
  const collect = async () => {
    const words = `${freed.logs_removed} logs and ${freed.runs_deleted} archived runs go for good, as the retention settings say.`;
    if (await ask({ title: `Free ${bytes(freed.freed_bytes)}?`, text: words, verb: "Free space" }))
      act(async () => (await post("gc", {}), setFreed(null), say("Done.")));
  };
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
        <button onClick=${look}>What could be freed?</button>
        <button onClick=${() => act(async () => say(`Written: ${(await post("backup")).path}`))}>Back up now</button>
      </div>`
    }
    ${
      freed &&
      html`<p>
        ${
          freed.freed_bytes
            ? html`${bytes(freed.freed_bytes)} in ${freed.logs_removed} logs and ${freed.runs_deleted} archived runs.${" "}
            <button onClick=${collect}>Free it</button>`
            : "Nothing, by the retention settings."
        }
      </p>`
    }
  </section>`;
}

function ThisBrowser() {
  const words = {
    on: "on",
    off: "off",
    refused: "refused: allow them for this address in the browser's own settings",
    impossible: "not possible here: the browser allows them over https or on localhost only",
  };
  const state = noticesAre.value;
  return html`<section class="stack" aria-label="This browser">
    <h2>Notices</h2>
    <p>
      When a run fails or something waits for an answer while this window is not looked at:${" "}
      <strong>${words[state]}</strong>
    </p>
    ${
      (state === "on" || state === "off") &&
      html`<div>
        <button onClick=${() => setNotices(state === "off")}>
          <${Icon} name="bell" size="14" />
          ${state === "off" ? "Turn notices on" : "Turn notices off"}
        </button>
      </div>`
    }
    <h2>Kept here</h2>
    <p class="muted">
      The token (scope ${scope.value || "unknown"}) and how charts are drawn, for this address alone; in this tab,
      what you wrote and did not send. Signing out forgets the token and what you wrote.
    </p>
  </section>`;
}
