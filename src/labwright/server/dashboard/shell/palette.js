// The command palette (⌘K or Ctrl-K): find a run, sweep, plan or page, or create something.

import { html, signal, useRef, useState } from "../view.js";
import { PAGES } from "../data/pages.js";
import { go } from "../data/router.js";
import { useSearch } from "../data/search.js";
import { mayWrite } from "../data/session.js";
import { useModal } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { NEW, openNew } from "../work/new_work.js";

const open = signal(false);
const AT_MOST = 8;

export const openPalette = () => (open.value = true);

addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey) || event.altKey || event.shiftKey) return;
  if (document.querySelector("dialog[open]:not(.palette)") || !document.querySelector(".shell")) return;
  event.preventDefault();
  open.value = !open.value;
});

export const Palette = () => (open.value ? html`<${Dialog} />` : null);

function Dialog() {
  const ref = useRef(null);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const found = useFound(query);
  const chosen = Math.min(at, found.length - 1);
  useModal(ref);

  const close = () => (open.value = false);
  const take = (item) => {
    close();
    if (item.open) item.open();
    else go(item.href);
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) setAt((chosen + step + found.length) % found.length);
    else if (event.key === "Enter" && found[chosen]) take(found[chosen]);
    else return;
    event.preventDefault();
  };
  const onInput = (event) => {
    setQuery(event.currentTarget.value);
    setAt(0);
  };
  return html`<dialog
    ref=${ref}
    class="dialog palette"
    aria-label="Command palette"
    onCancel=${close}
    onClick=${(event) => event.target === ref.current && close()}
  >
    <label class="palette-field">
      <${Icon} name="search" />
      <input
        type="text"
        placeholder="Find a run, sweep, plan or page"
        aria-label="Find"
        autofocus
        spellcheck=${false}
        autocomplete="off"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-found"
        aria-activedescendant=${found.length ? `found-${chosen}` : undefined}
        onInput=${onInput}
        onKeyDown=${onKeyDown}
      />
    </label>
    <ul id="palette-found" role="listbox" aria-label="Results">
      ${found.map(
        (item, index) =>
          html`<li
            key=${item.href ?? item.label}
            id="found-${index}"
            role="option"
            aria-selected=${String(index === chosen)}
            onClick=${() => take(item)}
            onPointerMove=${() => setAt(index)}
          >
            <${Icon} name=${item.icon} />
            <span class="palette-label">${item.label}</span>
            <span class="muted small">${item.kind}</span>
          </li>`,
      )}
    </ul>
    ${!found.length && html`<p class="muted palette-none">No matches.</p>`}
  </dialog>`;
}

function useFound(query) {
  const items = useSearch(query.trim() || null, AT_MOST);
  const low = query.trim().toLowerCase();
  const places = PAGES.filter(({ label }) => label.toLowerCase().includes(low)).map((place) => ({
    ...place,
    kind: `g ${place.key}`,
  }));
  const actions = mayWrite()
    ? NEW.map(({ name, label, icon }) => ({ label, icon, kind: "action", open: () => openNew(name) })).filter(
        ({ label }) => label.toLowerCase().includes(low),
      )
    : [];
  return low ? [...actions, ...places, ...items] : [...places, ...actions];
}
