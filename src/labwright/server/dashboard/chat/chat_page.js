// The chat page: the list of conversations and the open one. Without an open one, a message starts a new conversation.

import { number } from "../format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../view.js";
import { newKey, patch, post, remove, send } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useListKeys } from "../data/keyboard.js";
import { chatAddress, go, route } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { onEvent } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { confirmAction, TextDialog } from "../ui/dialog.js";
import { putDraft, useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { Message, Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { showToast, showError } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";
import { Composer } from "./composer.js";
import { sessionPath, stateOf, useConversation } from "./conversation.js";
import { Turn } from "./turn.js";

const DELETED = "session.deleted";
const SESSIONS = 200;
const NEAR_END = 60;
const NO_TEXT = "";
const draftOf = (id) => `chat ${id}`;
const MODES = {
  agent: "Inspects, starts and compares runs, and waits for them",
  plan: "Inspects and plans; starts nothing",
  wild: "Tries ideas until the goal is met; your later messages steer it",
};
const TRY = ["what is running?", "why did last fail?", "gpus", "alerts"];

// Delete the draft of a deleted conversation: it cannot be sent any more.
onEvent(({ type, data }) => type === DELETED && putDraft(draftOf(data.session_id), NO_TEXT, NO_TEXT));

export default function ChatPage({ id = "" }) {
  const sessions = useFetched("sessions", { limit: SESSIONS }, { refreshOn: eventTypes("session.") });
  if (sessions.problem && !sessions.data)
    return html`<${Problem} error=${sessions.problem} retry=${sessions.refresh} />`;
  return html`<div class="page chat-page ${id ? "chat-open" : ""}">
    <aside class="chat-list" aria-label="Conversations">
      <header class="page-head">
        <h2>Conversations</h2>
        <a class="button" href="#/chat">
          <${Icon} name="plus" size="14" />
          New
        </a>
      </header>
      ${
        sessions.data &&
        (sessions.data.length
          ? html`<${SessionList} sessions=${sessions.data} current=${id} />`
          : html`<p class="muted chat-none">No conversations yet.</p>`)
      }
    </aside>
    ${id ? html`<${Open} id=${id} />` : html`<${New} key=${String(route.value.query)} query=${route.value.query} />`}
  </div>`;
}

function New({ query }) {
  useTitle("Chat");
  const about = query.get("about")
    ? `@${query.get("about")} ${query.get("metric") ? `\`${query.get("metric")}\` ` : ""}`
    : "";
  // A draft about a run does not replace another draft.
  const [draft, setDraft] = useDraft(draftOf(about).trim(), NO_TEXT, about);
  const written = useLast(draft);
  const [mode, setMode] = useState("agent");
  const [busy, run] = useVerb();
  const key = useRef(newKey());
  const changed = (set) => (value) => (set(value), (key.current = newKey())); // a changed message needs a new key
  const start = async (text) => {
    const once = key.current;
    const session = await post("sessions", { mode }, once);
    await send("chat", { session_id: session.id, message: text }, `${once}-said`);
    putDraft(draftOf(session.id), withoutSent(written.current, text), NO_TEXT); // keep text typed in the meantime
    setDraft(NO_TEXT);
    go(chatAddress(session.id));
  };
  const startChat = (text = draft) => run(() => start(text), { keepBusy: true });
  return html`<div class="chat-main">
    <header class="page-head">
      <h1>Chat</h1>
    </header>
    <div class="chat-scroll">
      <${Message} icon="message-square" title="What can I help you with?">
        <p class="muted">
          The assistant uses the same actions as you. Without a language model it follows fixed rules and understands
          simple requests:
        </p>
        ${
          isPerson() &&
          html`<div class="chips chat-try">
            ${TRY.map(
              (text) =>
                html`<button class="chip" key=${text} disabled=${busy} onClick=${() => startChat(text)}>
                  ${text}
                </button>`,
            )}
          </div>`
        }
      </${Message}>
    </div>
    <${Composer}
      draft=${draft}
      setDraft=${changed(setDraft)}
      mode=${mode}
      setMode=${changed(setMode)}
      modes=${MODES}
      state=${busy ? "working" : "idle"}
      onSend=${() => startChat()}
    />
  </div>`;
}

function Open({ id }) {
  const { conversation, problem } = useConversation(id);
  const isDeleted = useDeletion(id);
  const {
    data: session,
    problem: gone,
    refresh,
  } = useFetched(sessionPath(id), {}, { refreshOn: (event) => event.data.session_id === id && event.type !== DELETED });
  const [draft, setDraft] = useDraft(draftOf(id), NO_TEXT);
  const written = useLast(draft);
  const [sending, setSending] = useState(null); // sent, but not in the log yet
  const key = useRef(newKey());
  useTitle(session?.title ?? "Chat");
  const now = conversation?.turns.at(-1);
  // Finished steps of the current turn.
  const paid = now && !now.end && now.steps.filter((step) => !step.isGrowing).length;
  useEffect(() => {
    if (paid) refresh(); // update the cost, for which there is no event
  }, [paid]);
  if (isDeleted)
    return html`<div class="chat-main">
      <h1 class="hidden">Chat</h1>
      <${Message} icon="trash" title="This conversation was deleted">
        <p>
          <a href="#/chat">Start a new conversation</a>
        </p>
      </${Message}>
    </div>`;
  if (!conversation && (problem ?? gone))
    return html`<div class="chat-main">
      <h1 class="hidden">Chat</h1>
      <${Problem} error=${problem ?? gone} />
    </div>`;
  if (!conversation || !session)
    return html`<div class="chat-main">
      <div class="loading" aria-busy="true"></div>
    </div>`;

  const state = stateOf(conversation);
  const isTaken = sending && conversation.turns.length > sending.after;
  const speak = async () => {
    setSending({ text: draft, after: conversation.turns.length });
    try {
      await send("chat", { session_id: id, message: draft }, key.current);
      key.current = newKey();
      setDraft(withoutSent(written.current, draft));
      setSending((now) => now && { ...now, isAnswered: true });
    } catch (error) {
      setSending(null);
      showError(error); // the draft stays; the same key makes a retry idempotent
    }
  };
  const type = (text) => {
    setDraft(text);
    if (sending?.isAnswered) setSending(null); // otherwise the message is still being sent
    key.current = newKey();
  };
  const act = (work) => work().then(refresh, showError);
  const setMode = (mode) => act(() => patch(sessionPath(id), { mode }));
  const stop = () => act(() => post(sessionPath(id, "/stop")));
  return html`<div class="chat-main">
    <${Head} session=${session} state=${state} refresh=${refresh} />
    <${Turns}
      turns=${conversation.turns}
      evidence=${conversation.evidence}
      pending=${sending && !isTaken ? sending.text : ""}
    />
    <${Composer}
      draft=${draft}
      setDraft=${type}
      mode=${session.mode}
      setMode=${setMode}
      modes=${MODES}
      state=${sending && !isTaken ? "working" : state}
      onSend=${speak}
      onStop=${state !== "idle" || session.waits.length ? stop : null}
    />
  </div>`;
}

// A ref with the latest value: the user may type while a message is being sent.
function useLast(value) {
  const last = useRef(value);
  last.current = value;
  return last;
}

const withoutSent = (text, sent) => (text.startsWith(sent) ? text.slice(sent.length).trimStart() : text);

// Whether the conversation was deleted, here or by someone else.
function useDeletion(id) {
  const [isDeleted, setDeleted] = useState(false);
  useEffect(() => onEvent(({ type, data }) => type === DELETED && data.session_id === id && setDeleted(true)), [id]);
  return isDeleted;
}

function Head({ session, state, refresh }) {
  const [renaming, setRenaming] = useState(false);
  const rename = (title) =>
    patch(sessionPath(session.id), { title }).then(() => (setRenaming(false), refresh()), showError);
  const drop = async () => {
    const text = "All of its messages are deleted. Its runs and sweeps are kept.";
    if (!(await confirmAction({ title: `Delete “${session.title}”?`, text, verb: "Delete conversation" }))) return;
    go("#/chat"); // leave first: the open page would request the deleted conversation
    remove(sessionPath(session.id)).then(() => showToast("Conversation deleted."), showError);
  };
  return html`<header class="page-head chat-head">
    <a class="back chat-back" href="#/chat">
      <${Icon} name="arrow-left" size="14" />
      <span class="hidden">Conversations</span>
    </a>
    <h1 title=${session.title}>${session.title}</h1>
    <${Spent} spent=${session.spent} state=${state} />
    ${
      isPerson() &&
      html`<${Menu} label=${html`<span class="hidden">More</span>`} icon="ellipsis">
        ${(close) =>
          html`<button class="menu-item" onClick=${() => (close(), setRenaming(true))}>
            <${Icon} name="pencil" size="14" />
            Rename…
          </button>
          <button class="menu-item danger" disabled=${state === "working"} onClick=${() => (close(), drop())}>
            <${Icon} name="trash" size="14" />
            Delete conversation…
          </button>`}
      </${Menu}>`
    }
    ${
      renaming &&
      html`<${TextDialog}
        title="Rename conversation"
        label="Title"
        text=${session.title}
        verb="Rename"
        short
        onClose=${() => setRenaming(false)}
        onSave=${rename}
      />`
    }
  </header>`;
}

function Spent({ spent, state }) {
  if (!spent.calls)
    return (
      state === "idle" &&
      html`<span class="muted small chat-cost" title="Fixed rules answer; no data leaves this machine">
        no model used
      </span>`
    );
  const tokens = spent.tokens_in + spent.tokens_out;
  const money = spent.calls > spent.unpriced_calls ? `$${spent.cost_usd.toFixed(spent.cost_usd < 1 ? 3 : 2)}` : "";
  const title = [
    `${spent.calls} calls, ${spent.tokens_in} tokens in, ${spent.tokens_out} out`,
    spent.unpriced_calls && `; price of ${spent.unpriced_calls} calls unknown`,
  ]
    .filter(Boolean)
    .join("");
  return html`<span class="muted small num chat-cost" title=${title}>
    ${[money, `${tokens < 10_000 ? tokens : `${number(tokens / 1000)}k`} tokens`].filter(Boolean).join(" · ")}
  </span>`;
}

// Scroll with new messages, unless the user has scrolled up.
function Turns({ turns, evidence, pending }) {
  const box = useRef(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => follows.current && (box.current.scrollTop = box.current.scrollHeight));
    watcher.observe(box.current);
    watcher.observe(box.current.firstChild);
    return () => watcher.disconnect();
  }, []);
  // Use the event's target: the ref is empty after the page was closed.
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
    (follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END);
  return html`<div
    class="chat-scroll"
    ref=${box}
    onScroll=${onScroll}
    tabindex="0"
    role="log"
    aria-label="Conversation"
  >
    <div class="turns">
      ${turns.map((turn) => html`<${Turn} key=${turn.number} turn=${turn} evidence=${evidence} />`)}
      ${
        pending &&
        html`<section class="turn">
          <div class="said said-pending">
            <p class="said-text">${pending}</p>
          </div>
        </section>`
      }
    </div>
  </div>`;
}

// All conversations, newest first, with their state.

const STATES = { working: ["running", "loader", "working"], asking: ["waiting", "hourglass", "needs approval"] };

function SessionList({ sessions, current }) {
  const box = useRef(null);
  useListKeys(box);
  return html`<ul class="sessions" ref=${box}>
    ${sessions.map(
      (session) =>
        html`<li key=${session.id}>
          <a href=${chatAddress(session.id)} aria-current=${session.id === current ? "page" : undefined}>
            <span class="session-title">${session.title}</span>
            <span class="muted small session-line">
              <${Ago} time=${session.updated_at} />
              <${State} session=${session} />
            </span>
          </a>
        </li>`,
    )}
  </ul>`;
}

function State({ session }) {
  const [kind, icon, text] =
    STATES[session.status] ?? (session.waits.length ? ["waiting", "hourglass", "waiting"] : []);
  return kind
    ? html`<span class="status status-${kind}">
      <${Icon} name=${icon} size="12" />
      ${text}
    </span>`
    : session.mode !== "agent" && html`<span>${session.mode}</span>`;
}
