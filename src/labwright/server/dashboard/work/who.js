// Who did something, in words; an agent with a link to where it was at work.

import { chatAddress, wildAddress } from "../data/router.js";
import { html } from "../view.js";
import { RunLink } from "./run_link.js";

const WORKPLACES = {
  chat: (id) =>
    html`agent in${" "}
    <a href=${chatAddress(id)} title=${id}>
      a conversation
    </a>`,
  wild: (id) =>
    html`agent of${" "}
    <a href=${wildAddress(id)} title=${id}>
      a loop
    </a>`,
  run: (id) => html`run <${RunLink} id=${id} />`,
};

// `actor` as the server writes it: `person`, `agent:chat-…`, `agent:laptop`.
export function Who({ actor }) {
  const [scope, name = ""] = actor.split(/:(.*)/s);
  const kind = name.split("-")[0];
  return Object.hasOwn(WORKPLACES, kind) && name !== kind
    ? WORKPLACES[kind](name)
    : [scope, name].filter(Boolean).join(" ");
}
