// The actor of an event; an agent links to its conversation or loop.

import { html } from "../view.js";
import { chatAddress, wildAddress } from "../data/router.js";
import { RunLink } from "./run_link.js";

const LINKS = {
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

// `actor` is the server's string: `person`, `agent:chat-…`, `agent:laptop`.
export function Actor({ actor }) {
  const [scope, name = ""] = actor.split(/:(.*)/s);
  const kind = name.split("-")[0];
  return Object.hasOwn(LINKS, kind) && name !== kind ? LINKS[kind](name) : [scope, name].filter(Boolean).join(" ");
}
