// The message field: Enter sends, Shift-Enter starts a new line, `@` mentions a run, sweep or plan.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../view.js";
import { useSearch } from "../data/search.js";
import { isPerson } from "../data/session.js";
import { Icon } from "../ui/icon.js";

const MENTION = /(^|\s)@([\w.-]*)$/;
const FOUND = 6;
const TALLEST = 220;
const LAST = { id: "last", label: "newest run", icon: "list", kind: "run" };

// `modes`: name → description. `extra`: more fields above the message.
export const Composer = (props) =>
  isPerson() ? html`<${Form} ...${props} />` : html`<p class="muted composer-none">Only a person can write here.</p>`;

function Form({ draft, setDraft, mode, setMode, modes, state, onSend, onStop, extra }) {
  const field = useRef(null);
  const [caret, setCaret] = useState(draft.length);
  const completion = useCompletion(draft, caret, field, (text, at) => {
    setDraft(text);
    requestAnimationFrame(() => (field.current.focus(), field.current.setSelectionRange(at, at), setCaret(at)));
  });
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${Math.min(TALLEST, field.current.scrollHeight + 2)}px`;
  }, [draft]);
  useEffect(() => field.current.focus({ preventScroll: true }), []);
  const isFree = state === "idle";
  const submit = (event) => {
    event?.preventDefault();
    if (isFree && draft.trim()) onSend();
  };
  const onKeyDown = (event) => {
    if (completion.onKeyDown(event) || event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  };
  const note = (event) => setCaret(event.currentTarget.selectionStart);
  const mention = () => {
    const text = `${draft}${draft && !/\s$/.test(draft) ? " " : ""}@`;
    setDraft(text);
    setCaret(text.length);
    field.current.focus(); // at once: the next key goes to the list
    requestAnimationFrame(() => field.current.setSelectionRange(text.length, text.length));
  };
  return html`<form class="composer" onSubmit=${submit}>
    ${completion.list}
    ${extra}
    <textarea
      ref=${field}
      rows="1"
      aria-label="Message"
      placeholder="Ask or instruct; @ mentions a run"
      maxlength="200000"
      value=${draft}
      autocomplete="off"
      aria-autocomplete="list"
      aria-controls=${completion.list ? "mentions" : undefined}
      aria-activedescendant=${completion.active}
      onInput=${(event) => (setDraft(event.currentTarget.value), note(event))}
      onKeyUp=${note}
      onClick=${note}
      onBlur=${completion.close}
      onKeyDown=${onKeyDown}
    ></textarea>
    <div class="composer-foot">
      <div class="segments" role="group" aria-label="Mode">
        ${Object.entries(modes).map(
          ([name, help]) =>
            html`<button
              type="button"
              key=${name}
              title=${help}
              aria-pressed=${String(name === mode)}
              onClick=${() => setMode(name)}
            >
              ${name}
            </button>`,
        )}
      </div>
      <button type="button" onClick=${mention} title="Mention a run, sweep or plan">
        <${Icon} name="at-sign" size="14" />
        Mention
      </button>
      <span class="composer-space"></span>
      ${
        onStop &&
        html`<button type="button" class="danger" onClick=${onStop}>
          <${Icon} name="square" size="14" />
          ${isFree ? "Stop waiting" : "Stop"}
        </button>`
      }
      ${
        isFree &&
        html`<button class="primary" disabled=${!draft.trim()}>
          <${Icon} name="send" size="14" />
          ${mode === "wild" ? "Start" : "Send"}
        </button>`
      }
    </div>
  </form>`;
}

function useCompletion(draft, caret, field, put) {
  const [at, setAt] = useState(0);
  const [closed, setClosed] = useState("");
  const match = MENTION.exec(draft.slice(0, caret));
  const word = match ? match[2] : null;
  const isOpen = word !== null && closed !== draft.slice(0, caret);
  const things = useSearch(isOpen ? word : null, FOUND);
  const found = isOpen ? [...("last".startsWith(word) ? [LAST] : []), ...things].slice(0, 2 * FOUND) : [];
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => setAt(0), [word]);
  const close = () => setClosed(draft.slice(0, caret));
  const take = ({ id }) => {
    const before = draft.slice(0, caret - word.length);
    put(`${before}${id} ${draft.slice(caret).replace(/^ /, "")}`, before.length + id.length + 1);
  };
  const onKeyDown = (event) => {
    if (!found.length) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((chosen + step + found.length) % found.length);
    else if (event.key === "Tab" || (event.key === "Enter" && found[chosen].id !== word)) take(found[chosen]);
    else if (event.key === "Escape") close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const list =
    found.length > 0 &&
    html`<ul id="mentions" class="mentions" role="listbox" aria-label="Mentions">
      ${found.map(
        (item, index) =>
          html`<li
            key=${item.id}
            id="mention-${index}"
            role="option"
            aria-selected=${String(index === chosen)}
            onPointerDown=${(event) => (event.preventDefault(), take(item))}
            onPointerMove=${() => setAt(index)}
          >
            <${Icon} name=${item.icon} size="14" />
            <span class="palette-label">${item.label}</span>
            <span class="muted small">${item.kind}</span>
          </li>`,
      )}
    </ul>`;
  return { list, onKeyDown, close, active: found.length ? `mention-${chosen}` : undefined };
}
