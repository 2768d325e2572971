// Find a run, a sweep, a plan or a place by a few letters, or begin something, from anywhere: ⌘K or Ctrl-K.

import { PLACES } from "../data/places.js";
import { go } from "../data/router.js";
import { useThings } from "../data/search.js";
import { mayWrite } from "../data/session.js";
import { html, signal, useRef, useState } from "../view.js";
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
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const found = useFound(words);
  const chosen = Math.min(at, found.length - 1);
  useModal(ref);

  const close = () => (open.value = false);
  const take = (item) => {
    close();
    if (item.begin) item.begin();
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
    setWords(event.currentTarget.value);
    setAt(0);
  };
  return html`<dialog
    ref=${ref}
    class="dialog palette"
    aria-label="Find or do"
    onCancel=${close}
    onClick=${(event) => event.target === ref.current && close()}
  >
    <label class="palette-field">
      <${Icon} name="search" />
      <input
        type="text"
        placeholder="A run, a sweep, a plan, a page…"
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
    <ul id="palette-found" role="listbox" aria-label="Found">
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
    ${!found.length && html`<p class="muted palette-none">Nothing has these letters.</p>`}
  </dialog>`;
}

function useFound(words) {
  const things = useThings(words.trim() || null, AT_MOST);
  const low = words.trim().toLowerCase();
  const places = PLACES.filter(({ label }) => label.toLowerCase().includes(low)).map((place) => ({
    ...place,
    kind: `g ${place.key}`,
  }));
  const begun = mayWrite()
    ? NEW.map(({ name, label, icon }) => ({ label, icon, kind: "do", begin: () => openNew(name) })).filter(
        ({ label }) => label.toLowerCase().includes(low),
      )
    : [];
  return low ? [...begun, ...places, ...things] : [...places, ...begun];
}
