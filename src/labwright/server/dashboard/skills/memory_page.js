// What every conversation is told. What an agent noted waits here until a person accepts it.

import { patch, post, remove } from "../data/api.js";
import { useDraft } from "../ui/drafts.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { isPerson, mayWrite } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { html, useState } from "../view.js";
import { TextDialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { say, sayError } from "../ui/toast.js";
import { Who } from "../work/who.js";

const LONGEST = 4000;
const memoryPath = (id) => `memories/${encodeURIComponent(id)}`;

export default function MemoryPage() {
  useTitle("Memory");
  const { data, problem, refresh } = useFetched("memories", { limit: 1000 }, { wakes: wakesOn("memory.") });
  const [filter, setFilter] = useState("");
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  const found = (data ?? []).filter(({ text }) => text.toLowerCase().includes(filter.toLowerCase()));
  const act = (work, words) => work().then((made) => (words && say(words), refresh(), made), sayError);
  const group = (title, memories) =>
    memories.length > 0 &&
    html`<section class="stack" aria-label=${title}>
      <h2>${title}</h2>
      <ul class="lines">
        ${memories.map((memory) => html`<${Memory} key=${memory.id} memory=${memory} act=${act} />`)}
      </ul>
    </section>`;
  return html`<div class="page memory-page">
    <header class="page-head">
      <h1>Memory</h1>
      ${
        data?.length > 8 &&
        html`<input
          type="search"
          aria-label="Filter notes"
          placeholder="Filter notes"
          value=${filter}
          onInput=${(event) => setFilter(event.currentTarget.value)}
        />`
      }
    </header>
    <div class="page-body stack">
      ${mayWrite() && html`<${Add} act=${act} />`}
      ${!data && html`<div class="loading" aria-busy="true"></div>`}
      ${group(
        "Proposed by agents",
        found.filter(({ accepted }) => !accepted),
      )}
      ${group(
        "Told to every conversation",
        found.filter(({ accepted }) => accepted),
      )}
      ${
        data &&
        !found.length &&
        html`<${Message} icon="bookmark" title=${data.length ? "No note has these letters" : "Nothing is remembered yet"}>
          <p class="muted">
            What holds for all experiments here: which split, which baseline, what was tried in vain.
          </p>
        </${Message}>`
      }
    </div>
  </div>`;
}

function Add({ act }) {
  const [text, setText] = useDraft("new note", "");
  const submit = (event) => {
    event.preventDefault();
    if (text.trim()) act(() => post("memories", { text: text.trim() }).then(() => setText("")), "Noted.");
  };
  return html`<form class="memory-add" onSubmit=${submit}>
    <input
      type="text"
      aria-label="Note"
      placeholder="We compare on the 2024 split"
      maxlength=${LONGEST}
      value=${text}
      onInput=${(event) => setText(event.currentTarget.value)}
    />
    <button class="primary" disabled=${!text.trim()}>
      Remember
    </button>
  </form>`;
}

function Memory({ memory, act }) {
  const [isEditing, setEditing] = useState(false);
  const path = memoryPath(memory.id);
  const change = (changes, words) => act(() => patch(path, changes), words);
  const bringBack = () => act(() => post("memories", { text: memory.text }), "It is back.");
  const drop = () =>
    act(() =>
      remove(path).then(() => say("Deleted.", memory.accepted ? { action: { label: "Undo", run: bringBack } } : {})),
    );
  return html`<li class="memory">
    <p class="memory-text">${memory.text}</p>
    <p class="muted small">
      <${Who} actor=${memory.created_by} /> · <${Ago} time=${memory.updated_at} />
    </p>
    ${
      isPerson() &&
      html`<div class="memory-verbs">
        ${
          !memory.accepted &&
          html`<button
            class="primary"
            onClick=${() => change({ accepted: true }, "Told to every conversation from now on.")}
          >
            Accept
          </button>`
        }
        <button onClick=${() => setEditing(true)}>
          <${Icon} name="pencil" size="14" />
          Edit
        </button>
        <button class="danger" onClick=${drop}>
          <${Icon} name="trash" size="14" />
          Delete
        </button>
      </div>`
    }
    ${
      isEditing &&
      html`<${TextDialog}
        title="Edit the note"
        label="Note"
        text=${memory.text}
        verb="Save note"
        onClose=${() => setEditing(false)}
        onSave=${(text) => change({ text }, "Saved.").then((saved) => saved && setEditing(false))}
      />`
    }
  </li>`;
}
