// Which language models answer, whether their keys are there, what they took. A key goes in and never comes out.

import { put, remove } from "../data/api.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { isPerson } from "../data/session.js";
import { number } from "../format.js";
import { GROUPS, SettingsForm } from "./form.js";
import { html, useState } from "../view.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { say, sayError } from "../ui/toast.js";

const wakes = wakesOn("settings.", "session.status");

export function ModelSettings({ settings, refresh }) {
  const { data, problem, refresh: again } = useFetched("models", {}, { wakes });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${again} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<section class="stack" aria-label="Models">
    ${
      data.configured
        ? html`<${Tiers} tiers=${data.tiers} />`
        : html`<p class="hint-line">
          No language model is chosen: rules answer, and nothing leaves this machine. Name one below, for example${" "}
          <code>anthropic:claude-sonnet-5-5</code> or <code>ollama:qwen3:8b</code>.
        </p>`
    }
    <${SettingsForm}
      words=${GROUPS.models}
      settings=${settings}
      refresh=${() => (refresh(), again())}
      label="Models and their limits"
    />
    <${Keys} providers=${data.providers} refresh=${again} />
  </section>`;
}

const Tiers = ({ tiers }) =>
  html`<div class="wide" tabindex="0" role="region" aria-label="Models in use">
    <table class="grid-table">
      <thead>
        <tr>
          ${["For", "Model", "Key", "Calls", "Tokens", "Cost"].map((name) => html`<th scope="col">${name}</th>`)}
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
                ${priced ? `$${spent.cost_usd.toFixed(2)}` : html`<span class="muted">price not known</span>`}
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
      A key is written to a file that only you can read, used from the next question on, and never shown again. A
      variable of the server's environment goes before it.
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
  const act = (work, words) => work().then(() => (setValue(""), say(words), refresh()), sayError);
  const submit = (event) => {
    event.preventDefault();
    if (value.trim()) act(() => put(path, { key: value.trim() }), `The key of ${provider.name} is kept.`);
  };
  const drop = async () => {
    if (
      await ask({
        title: `Remove the key of ${provider.name}?`,
        text: "Its file is deleted. It cannot be shown or brought back from here.",
        verb: "Remove key",
      })
    )
      act(() => remove(path), "Removed.");
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
          placeholder=${isInFile ? "Replace the key" : "Key"}
          autocomplete="off"
          maxlength="1000"
          value=${value}
          onInput=${(event) => setValue(event.currentTarget.value)}
        />
        <button disabled=${!value.trim()}>Keep</button>
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
