// Language models: which are used, their keys and their cost. A key is never shown again.

import { number } from "../format.js";
import { html, useState } from "../view.js";
import { put, remove } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { isPerson } from "../data/session.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { useVerb } from "../ui/verb.js";
import { GROUPS, SettingsForm } from "./form.js";

const refreshOn = eventTypes("settings.", "session.status");

export function ModelSettings({ settings, refresh }) {
  const { data, problem, refresh: reload } = useFetched("models", {}, { refreshOn });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${reload} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<section class="stack" aria-label="Models">
    ${
      data.configured
        ? html`<${Tiers} tiers=${data.tiers} />`
        : html`<p class="hint-line">
          No language model is set. Fixed rules answer, and no data leaves this machine. Set one below, for${" "}
          example${" "}
          <code>anthropic:claude-sonnet-5-5</code> or <code>ollama:qwen3:8b</code>.
        </p>`
    }
    <${SettingsForm}
      help=${GROUPS.models}
      settings=${settings}
      refresh=${() => (refresh(), reload())}
      label="Model settings"
    />
    <${Keys} providers=${data.providers} refresh=${reload} />
  </section>`;
}

const Tiers = ({ tiers }) =>
  html`<div class="wide" tabindex="0" role="region" aria-label="Models in use">
    <table class="grid-table">
      <thead>
        <tr>
          ${["Tier", "Model", "Key", "Calls", "Tokens", "Cost"].map((name) => html`<th scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${tiers.map(
          ({ tier, model, key, usable, hint, spent, priced }) =>
            html`<tr key=${tier}>
              <th scope="row">${tier}</th>
              <td>${model}</td>
              <td title=${hint}>
                <span class="status status-${usable ? "finished" : "failed"}">
                  <${Icon} name=${usable ? "circle-check" : "circle-x"} size="14" />
                  ${key}
                </span>
              </td>
              <td class="num">${spent.calls}</td>
              <td class="num">${number(spent.tokens_in + spent.tokens_out)}</td>
              <td class="num">
                ${priced ? `$${spent.cost_usd.toFixed(2)}` : html`<span class="muted">unknown price</span>`}
              </td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;

function Keys({ providers, refresh }) {
  return html`<section class="card stack" aria-label="Keys">
    <h2>Keys</h2>
    <p class="muted">
      A key is stored in a file that only you can read, and is never shown again. An environment variable of the server
      takes precedence.
    </p>
    <ul class="key-list">
      ${providers.map((provider) => html`<${Key} key=${provider.name} provider=${provider} refresh=${refresh} />`)}
    </ul>
  </section>`;
}

function Key({ provider, refresh }) {
  const [value, setValue] = useState("");
  const path = `models/${encodeURIComponent(provider.name)}/key`;
  const isInFile = provider.usable && provider.key.startsWith("from /");
  const [busy, run] = useVerb({ refresh: () => (setValue(""), refresh()) });
  const submit = (event) => {
    event.preventDefault();
    if (value.trim()) run(() => put(path, { key: value.trim() }), { done: `Saved the key of ${provider.name}.` });
  };
  const drop = () => {
    const confirm = {
      title: `Remove the key of ${provider.name}?`,
      text: "The file with the key is deleted. It cannot be restored.",
      verb: "Remove key",
    };
    run(() => remove(path), { confirm, done: "Key removed." });
  };
  const state = provider.usable ? (provider.key === "none needed" ? "stopped" : "finished") : "waiting";
  return html`<li>
    <strong>${provider.name}</strong>
    <span class="status status-${state} key-state" title=${provider.hint || provider.address}>
      <${Icon} name="key-round" size="14" />
      ${provider.key}
    </span>
    ${
      isPerson() &&
      html`<form class="key-form" onSubmit=${submit} autocomplete="off">
        <input
          type="password"
          aria-label="Key of ${provider.name}"
          placeholder=${isInFile ? "New key" : "Key"}
          autocomplete="off"
          maxlength="1000"
          value=${value}
          onInput=${(event) => setValue(event.currentTarget.value)}
        />
        <button disabled=${busy || !value.trim()}>Save</button>
        ${
          isInFile &&
          html`<button type="button" class="danger" onClick=${drop}>
            Remove
          </button>`
        }
      </form>`
    }
  </li>`;
}
