// Notes for every conversation. A person has to accept the notes of agents.

import { html, useState } from "../view.js";
import { patch, post, remove } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { isPerson, mayWrite } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { TextDialog } from "../ui/dialog.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { showToast } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";
import { Actor } from "../work/actor.js";

const MAX_LENGTH = 4000;
const memoryPath = (id) => `memories/${encodeURIComponent(id)}`;

export default function MemoryPage() {
  useTitle("Memory");
  const { data, problem, refresh } = useFetched("memories", { limit: 1000 }, { refreshOn: eventTypes("memory.") });
  const [filter, setFilter] = useState("");
  const [busy, run] = useVerb({ refresh });
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  const found = (data ?? []).filter(({ text }) => text.toLowerCase().includes(filter.toLowerCase()));
  const group = (title, memories) =>
    memories.length > 0 &&
    html`<section class="stack" aria-label=${title}>
      <h2>${title}</h2>
      <ul class="lines">
        ${memories.map((memory) => html`<${Memory} key=${memory.id} memory=${memory} busy=${busy} run=${run} />`)}
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
      ${mayWrite() && html`<${Add} busy=${busy} run=${run} />`}
      ${!data && html`<div class="loading" aria-busy="true"></div>`}
      ${group(
        "Proposed by agents",
        found.filter(({ accepted }) => !accepted),
      )}
      ${group(
        "Used in every conversation",
        found.filter(({ accepted }) => accepted),
      )}
      ${
        data &&
        !found.length &&
        html`<${Message} icon="bookmark" title=${data.length ? "No matching notes" : "No notes yet"}>
          <p class="muted">
            Write down what applies to all experiments: the data split, the baseline, what did not work.
          </p>
        </${Message}>`
      }
    </div>
  </div>`;
}

function Add({ busy, run }) {
  const [text, setText] = useDraft("new note", "");
  const submit = (event) => {
    event.preventDefault();
    if (text.trim())
      run(() => post("memories", { text: text.trim() }).then(() => setText("")), { done: "Note saved." });
  };
  return html`<form class="memory-add" onSubmit=${submit}>
    <input
      type="text"
      aria-label="Note"
      placeholder="We compare on the 2024 split"
      maxlength=${MAX_LENGTH}
      value=${text}
      onInput=${(event) => setText(event.currentTarget.value)}
    />
    <button class="primary" disabled=${busy || !text.trim()}>
      Add note
    </button>
  </form>`;
}

function Memory({ memory, busy, run }) {
  const [isEditing, setEditing] = useState(false);
  const path = memoryPath(memory.id);
  const change = (changes, done) => run(() => patch(path, changes), { done });
  const restore = () => run(() => post("memories", { text: memory.text }), { done: "Note restored." });
  const drop = () =>
    run(async () => {
      await remove(path);
      showToast("Note deleted.", memory.accepted ? { action: { label: "Undo", run: restore } } : {});
    });
  return html`<li class="memory">
    <p class="memory-text">${memory.text}</p>
    <p class="muted small">
      <${Actor} actor=${memory.created_by} /> · <${Ago} time=${memory.updated_at} />
    </p>
    ${
      isPerson() &&
      html`<div class="memory-verbs">
        ${
          !memory.accepted &&
          html`<button
            class="primary"
            disabled=${busy}
            onClick=${() => change({ accepted: true }, "Note accepted. New conversations use it.")}
          >
            Accept
          </button>`
        }
        <button onClick=${() => setEditing(true)}>
          <${Icon} name="pencil" size="14" />
          Edit
        </button>
        <button class="danger" disabled=${busy} onClick=${drop}>
          <${Icon} name="trash" size="14" />
          Delete
        </button>
      </div>`
    }
    ${
      isEditing &&
      html`<${TextDialog}
        title="Edit note"
        label="Note"
        text=${memory.text}
        verb="Save note"
        onClose=${() => setEditing(false)}
        onSave=${(text) => change({ text }, "Note saved.").then((saved) => saved && setEditing(false))}
      />`
    }
  </li>`;
}
