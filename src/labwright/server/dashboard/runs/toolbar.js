// What stands above the table of runs: filter, status, groups, columns, saved views. All of it is in the address.

import { get, put, remove } from "../data/api.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { go, route, setQuery } from "../data/router.js";
import { isPerson } from "../data/session.js";
import * as list from "./run_list.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { useKeys } from "../data/keyboard.js";
import { Menu } from "../ui/menu.js";
import { say, sayError } from "../ui/toast.js";
import { NewButton } from "../work/new_work.js";
import { GROUPS } from "../work/run_columns.js";

const SWEEPS = 200; // among the newest of the project

export function RunsToolbar({ view, columns }) {
  return html`<header class="page-head">
    <h1>Runs</h1>
    <${FilterBox} q=${view.q} />
    <${Chips} show=${view.show} />
    <div class="toolbar">
      ${view.tag && html`<${Narrowed} label="tag ${view.tag}" name="tag" />`}
      ${view.sweep && html`<${OfSweep} id=${view.sweep} />`}
      <${Menu}
        label=${view.group ? `By ${GROUPS[view.group].toLowerCase()}` : "Group"}
        icon="group"
        active=${Boolean(view.group)}
      >
        ${(close) =>
          Object.entries(GROUPS).map(
            ([name, label]) =>
              html`<button
                class="menu-item"
                key=${name}
                aria-pressed=${String(name === view.group)}
                onClick=${() => (setQuery({ group: name }), close())}
              >
                ${label}
              </button>`,
          )}
      </${Menu}>
      <${ColumnMenu} columns=${columns} chosen=${view.cols !== null} />
      <${ViewMenu} />
      <${NewButton} name="run" />
    </div>
  </header>`;
}

const Narrowed = ({ label, name }) =>
  html`<button class="chip" aria-pressed="true" title="Show all again" onClick=${() => setQuery({ [name]: "" })}>
    ${label}
    <${Icon} name="x" size="12" />
  </button>`;

function OfSweep({ id }) {
  const { data } = useFetched("sweeps", { limit: SWEEPS });
  return html`<${Narrowed} label=${data?.find((sweep) => sweep.id === id)?.name ?? id} name="sweep" />`;
}

function FilterBox({ q }) {
  const ref = useRef(null);
  useKeys({ "/": () => ref.current.select() });
  useEffect(() => {
    if (document.activeElement !== ref.current) ref.current.value = q;
  }, [q]);
  return html`<label class="filter">
    <${Icon} name="search" />
    <input
      ref=${ref}
      type="search"
      placeholder="Filter by name or command"
      aria-label="Filter runs"
      onInput=${(event) => setQuery({ q: event.currentTarget.value })}
      spellcheck=${false}
      autocomplete="off"
    />
    <kbd>/</kbd>
  </label>`;
}

const Chips = ({ show }) =>
  html`<div class="chips" role="group" aria-label="Show runs by status">
    ${Object.entries(list.SHOWN).map(
      ([name, { label }]) =>
        html`<button
          key=${name}
          class="chip"
          aria-pressed=${String(name === show)}
          onClick=${() => setQuery({ show: name === "all" ? "" : name })}
        >
          ${label}
        </button>`,
    )}
  </div>`;

function ColumnMenu({ columns, chosen }) {
  const [words, setWords] = useState("");
  const { metrics, params } = list.knownColumns.value;
  const has = (key) => key.toLowerCase().includes(words.toLowerCase());
  const toggle = (column) => {
    const next = columns.includes(column) ? columns.filter((other) => other !== column) : [...columns, column];
    setQuery({ cols: next.join("\n") || "\n" });
  };
  const section = (title, mark, keys) =>
    keys.length > 0 &&
    html`<p class="menu-title">${title}</p>
    ${keys.map(
      (key) =>
        html`<label class="menu-check" key=${key}>
          <input type="checkbox" checked=${columns.includes(mark + key)} onChange=${() => toggle(mark + key)} />
          <span title=${key}>${key}</span>
        </label>`,
    )}`;
  return html`<${Menu} label="Columns" icon="columns-3" active=${chosen}>
    <input
      type="search"
      placeholder="Find a column"
      aria-label="Find a column"
      onInput=${(event) => setWords(event.currentTarget.value)}
    />
    <div class="menu-scroll">
      ${section("Metrics", "m:", metrics.filter(has))}
      ${section("Parameters", "p:", params.filter(has))}
      ${
        !metrics.length &&
        !params.length &&
        html`<p class="muted small">These runs have no metrics and no parameters yet.</p>`
      }
    </div>
    ${
      chosen &&
      html`<button class="link" onClick=${() => setQuery({ cols: "" })}>
        Choose by itself
      </button>`
    }
  </${Menu}>`;
}

const replacing = ({ name }) => ({
  title: `Replace the view “${name}”?`,
  text: "It shows something else so far; that is gone for everybody here.",
  verb: "Replace view",
});

// Kept by the server, so that they are there in every browser.
function ViewMenu() {
  const { data, refresh } = useFetched("views", {}, { wakes: wakesOn("view.") });
  const [name, setName] = useState("");
  const views = data ?? [];
  const query = route.value.query.toString();
  const current = views.find((view) => view.query === query);
  const change = (work) => work.then(refresh, sayError);
  const drop = async (view) => {
    await remove(`views?name=${encodeURIComponent(view.name)}`);
    say(`Deleted the view ${view.name}.`, { action: { label: "Undo", run: () => change(put("views", view)) } });
  };
  const keep = async (made) => {
    const known = await get("views"); // as they are now: those shown may be older, or not there yet
    const isOther = known.some((view) => view.name === made.name && view.query !== made.query);
    if (isOther && !(await ask(replacing(made)))) return;
    await put("views", made);
    setName("");
  };
  const save = (event, close) => {
    event.preventDefault();
    const made = { name: name.trim(), query };
    if (!made.name) return;
    close();
    change(keep(made));
  };
  return html`<${Menu} label=${current ? current.name : "Views"} icon="save" active=${Boolean(current)}>
    ${(close) =>
      html`${views.map(
        (view) =>
          html`<div class="menu-row" key=${view.name}>
            <button
              class="menu-item"
              aria-pressed=${String(view === current)}
              onClick=${() => (go(`#/runs?${view.query}`), close())}
            >
              ${view.name}
            </button>
            ${
              isPerson() &&
              html`<button class="bare" aria-label="Delete the view ${view.name}" onClick=${() => change(drop(view))}>
                <${Icon} name="x" size="12" />
              </button>`
            }
          </div>`,
      )}
      ${
        isPerson()
          ? html`<form class="menu-form" onSubmit=${(event) => save(event, close)}>
            <input
              type="text"
              placeholder="Name of this view"
              aria-label="Name of this view"
              value=${name}
              maxlength="60"
              onInput=${(event) => setName(event.currentTarget.value)}
            />
            <button>Save view</button>
          </form>`
          : !views.length && html`<p class="muted small">Nobody has saved a view yet.</p>`
      }`}
  </${Menu}>`;
}
