// Conversations: a list, and the one that is open. Without one, what is typed begins a new one.

import { Composer } from "./composer.js";
import { sessionPath, stateOf, useConversation } from "./conversation.js";
import { Turn } from "./turn.js";
import { newKey, patch, post, remove, send } from "../data/api.js";
import { putDraft, useDraft } from "../ui/drafts.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { chatAddress, go, route } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { onEvent } from "../data/store.js";
import { useTitle } from "../data/window_title.js";
import { number } from "../format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../view.js";
import { ask, TextDialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { useListKeys } from "../data/keyboard.js";
import { Menu } from "../ui/menu.js";
import { Message, Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { say, sayError } from "../ui/toast.js";

const DELETED = "session.deleted";
const SESSIONS = 200;
const NEAR_END = 60;
const NO_WORDS = "";
const draftOf = (id) => `chat ${id}`;
const MODES = {
  agent: "Looks, launches, compares and waits",
  plan: "Looks and plans; starts nothing",
  wild: "Tries one idea after another until the goal is met; what you say later steers it",
};
const TRY = ["what is running?", "why did last fail?", "gpus", "alerts"];

// Words for a conversation that is no more can be neither sent nor found, and would be asked about before the page goes.
onEvent(({ type, data }) => type === DELETED && putDraft(draftOf(data.session_id), NO_WORDS, NO_WORDS));

export default function ChatPage({ id = "" }) {
  const sessions = useFetched("sessions", { limit: SESSIONS }, { wakes: wakesOn("session.") });
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
          : html`<p class="muted chat-none">None so far.</p>`)
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
  const [draft, setDraft] = useDraft(draftOf(about).trim(), NO_WORDS, about); // what is asked about a run does not go over what was written before
  const written = useLast(draft);
  const [mode, setMode] = useState("agent");
  const [busy, setBusy] = useState(false);
  const key = useRef(newKey());
  const changed = (set) => (value) => (set(value), (key.current = newKey())); // something else is not said under an old key
  const begin = async (text = draft) => {
    setBusy(true);
    const once = key.current;
    try {
      const session = await post("sessions", { mode }, once);
      await send("chat", { session_id: session.id, message: text }, `${once}-said`);
      putDraft(draftOf(session.id), withoutSaid(written.current, text), NO_WORDS); // what was not said goes along
      setDraft(NO_WORDS);
      go(chatAddress(session.id));
    } catch (error) {
      sayError(error);
      setBusy(false);
    }
  };
  return html`<div class="chat-main">
    <header class="page-head">
      <h1>Chat</h1>
    </header>
    <div class="chat-scroll">
      <${Message} icon="message-square" title="What do you want to know, or have done?">
        <p class="muted">
          It looks, launches, compares and waits through the same verbs as you. Without a language model it is a set
          of rules and understands plain requests:
        </p>
        ${
          isPerson() &&
          html`<div class="chips chat-try">
            ${TRY.map(
              (words) =>
                html`<button class="chip" key=${words} disabled=${busy} onClick=${() => begin(words)}>
                  ${words}
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
      onSend=${() => begin()}
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
  } = useFetched(sessionPath(id), {}, { wakes: (event) => event.data.session_id === id && event.type !== DELETED });
  const [draft, setDraft] = useDraft(draftOf(id), NO_WORDS);
  const written = useLast(draft);
  const [sending, setSending] = useState(null); // what was said and is not in the log yet
  const key = useRef(newKey());
  useTitle(session?.title ?? "Chat");
  const now = conversation?.turns.at(-1);
  const paid = now && !now.end && now.steps.filter((step) => !step.isGrowing).length; // of the turn at work, step by step
  useEffect(() => {
    if (paid) refresh(); // no event tells of what it cost before its end
  }, [paid]);
  if (isDeleted)
    return html`<div class="chat-main">
      <h1 class="hidden">Chat</h1>
      <${Message} icon="trash" title="This conversation was deleted">
        <p>
          <a href="#/chat">Begin another one</a>
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
      setDraft(withoutSaid(written.current, draft));
      setSending((now) => now && { ...now, isAnswered: true });
    } catch (error) {
      setSending(null);
      sayError(error); // the words stay; sent again under the same key they are said once
    }
  };
  const type = (text) => {
    setDraft(text);
    if (sending?.isAnswered) setSending(null); // else it is still on its way, and would be said again with what is added
    key.current = newKey();
  };
  const act = (work) => work().then(refresh, sayError);
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

// By now: more may be typed while words are on their way.
function useLast(value) {
  const last = useRef(value);
  last.current = value;
  return last;
}

const withoutSaid = (text, said) => (text.startsWith(said) ? text.slice(said.length).trimStart() : text);

// By somebody else, or in another tab: what is no longer there is not asked for.
function useDeletion(id) {
  const [isDeleted, setDeleted] = useState(false);
  useEffect(() => onEvent(({ type, data }) => type === DELETED && data.session_id === id && setDeleted(true)), [id]);
  return isDeleted;
}

function Head({ session, state, refresh }) {
  const [renaming, setRenaming] = useState(false);
  const rename = (title) =>
    patch(sessionPath(session.id), { title }).then(() => (setRenaming(false), refresh()), sayError);
  const drop = async () => {
    const text = "All that was said in it goes. Runs and sweeps that it started stay.";
    if (!(await ask({ title: `Delete “${session.title}”?`, text, verb: "Delete conversation" }))) return;
    go("#/chat"); // before: a page that is open would ask for what is no longer there
    remove(sessionPath(session.id)).then(() => say("Deleted."), sayError);
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
        title="Rename the conversation"
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
      html`<span class="muted small chat-cost" title="Rules answer, and nothing leaves this machine">
        no model used
      </span>`
    );
  const tokens = spent.tokens_in + spent.tokens_out;
  const money = spent.calls > spent.unpriced_calls ? `$${spent.cost_usd.toFixed(spent.cost_usd < 1 ? 3 : 2)}` : "";
  const title = `${spent.calls} calls, ${spent.tokens_in} tokens in, ${spent.tokens_out} out${spent.unpriced_calls ? `; the price of ${spent.unpriced_calls} calls is not known` : ""}`;
  return html`<span class="muted small num chat-cost" title=${title}>
    ${[money, `${tokens < 10_000 ? tokens : `${number(tokens / 1000)}k`} tokens`].filter(Boolean).join(" · ")}
  </span>`;
}

// Follows the end while one is there, and stays put for whoever reads further up.
function Turns({ turns, evidence, pending }) {
  const box = useRef(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => follows.current && (box.current.scrollTop = box.current.scrollHeight));
    watcher.observe(box.current);
    watcher.observe(box.current.firstChild);
    return () => watcher.disconnect();
  }, []);
  // Told of once more after the page was left: then the box is no longer ours to be found.
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
    (follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END);
  return html`<div class="chat-scroll" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-label="Conversation">
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

// All conversations, newest first, with what they are at.

const STATES = { working: ["running", "loader", "at work"], asking: ["waiting", "hourglass", "asks you"] };

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
  const [kind, icon, words] = STATES[session.status] ?? (session.waits.length ? ["waiting", "hourglass", "waits"] : []);
  return kind
    ? html`<span class="status status-${kind}">
      <${Icon} name=${icon} size="12" />
      ${words}
    </span>`
    : session.mode !== "agent" && html`<span>${session.mode}</span>`;
}
