// The toolbar of the runs table: filter, status, groups, columns, saved views. Its state is in the address.

import { html, useEffect, useRef, useState } from "../view.js";
import { get, put, remove } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useKeys } from "../data/keyboard.js";
import { go, route, setQuery } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { confirmAction } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { showToast, showError } from "../ui/toast.js";
import { NewButton } from "../work/new_work.js";
import { GROUPS } from "../work/run_columns.js";
import * as list from "./run_list.js";

const SWEEPS = 200; // newest sweeps to search

export function RunsToolbar({ view, columns }) {
  return html`<header class="page-head">
    <h1>Runs</h1>
    <${FilterBox} q=${view.q} />
    <${Chips} show=${view.show} />
    <div class="toolbar">
      ${view.tag && html`<${FilterChip} label="tag ${view.tag}" name="tag" />`}
      ${view.sweep && html`<${SweepFilter} id=${view.sweep} />`}
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

const FilterChip = ({ label, name }) =>
  html`<button class="chip" aria-pressed="true" title="Remove filter" onClick=${() => setQuery({ [name]: "" })}>
    ${label}
    <${Icon} name="x" size="12" />
  </button>`;

function SweepFilter({ id }) {
  const { data } = useFetched("sweeps", { limit: SWEEPS });
  return html`<${FilterChip} label=${data?.find((sweep) => sweep.id === id)?.name ?? id} name="sweep" />`;
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
  html`<div class="chips" role="group" aria-label="Status filter">
    ${Object.entries(list.FILTERS).map(
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
  const [query, setQueryText] = useState("");
  const { metrics, params } = list.knownColumns.value;
  const has = (key) => key.toLowerCase().includes(query.toLowerCase());
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
      onInput=${(event) => setQueryText(event.currentTarget.value)}
    />
    <div class="menu-scroll">
      ${section("Metrics", "m:", metrics.filter(has))}
      ${section("Parameters", "p:", params.filter(has))}
      ${!metrics.length && !params.length && html`<p class="muted small">No metrics or parameters yet.</p>`}
    </div>
    ${
      chosen &&
      html`<button class="link" onClick=${() => setQuery({ cols: "" })}>
        Automatic
      </button>`
    }
  </${Menu}>`;
}

const replacing = ({ name }) => ({
  title: `Replace the view “${name}”?`,
  text: "The saved view is different. It will be replaced for all users.",
  verb: "Replace view",
});

// Saved views. The server keeps them, so that they are available in every browser.
function ViewMenu() {
  const { data, refresh } = useFetched("views", {}, { refreshOn: eventTypes("view.") });
  const [name, setName] = useState("");
  const views = data ?? [];
  const query = route.value.query.toString();
  const current = views.find((view) => view.query === query);
  const change = (work) => work.then(refresh, showError);
  const drop = async (view) => {
    await remove(`views?name=${encodeURIComponent(view.name)}`);
    showToast(`Deleted view ${view.name}.`, { action: { label: "Undo", run: () => change(put("views", view)) } });
  };
  const keep = async (made) => {
    const known = await get("views"); // the shown list may be outdated
    const isOther = known.some((view) => view.name === made.name && view.query !== made.query);
    if (isOther && !(await confirmAction(replacing(made)))) return;
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
              html`<button class="bare" aria-label="Delete view ${view.name}" onClick=${() => change(drop(view))}>
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
              placeholder="View name"
              aria-label="View name"
              value=${name}
              maxlength="60"
              onInput=${(event) => setName(event.currentTarget.value)}
            />
            <button>Save view</button>
          </form>`
          : !views.length && html`<p class="muted small">No saved views yet.</p>`
      }`}
  </${Menu}>`;
}
