// All conversations, newest first, with what they are at.

import { chatAddress } from "../router.js";
import { html, useRef } from "../ui.js";
import { useListKeys } from "../keyboard.js";
import { Icon } from "./icon.js";
import { Ago } from "./time.js";

const STATES = { working: ["running", "loader", "at work"], asking: ["waiting", "hourglass", "asks you"] };

export function SessionList({ sessions, current }) {
  const box = useRef(null);
  useListKeys(box);
  return html`<ul class="sessions" ref=${box}>${sessions.map((session) => html`<li key=${session.id}>
    <a href=${chatAddress(session.id)} aria-current=${session.id === current ? "page" : undefined}>
      <span class="session-title">${session.title}</span>
      <span class="muted small session-line"><${Ago} time=${session.updated_at} /><${State} session=${session} /></span></a></li>`)}</ul>`;
}

function State({ session }) {
  const [kind, icon, words] = STATES[session.status] ?? (session.waits.length ? ["waiting", "hourglass", "waits"] : []);
  return kind ? html`<span class="status status-${kind}"><${Icon} name=${icon} size="12" />${words}</span>` : session.mode !== "agent" && html`<span>${session.mode}</span>`;
}
