// A page or a panel that has nothing to show says why, and what to do.

import { html } from "../ui.js";
import { Icon } from "./icon.js";

// A text of the server's, with what stands between backticks as code.
export const Words = ({ text }) => text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? html`<code key=${at}>${part}</code>` : part));

export function Message({ icon, title, children }) {
  return html`<div class="message">
    ${icon && html`<${Icon} name=${icon} size="28" />`}
    <h2>${title}</h2>
    ${children}
  </div>`;
}

export const Problem = ({ error, retry }) => html`<${Message} icon="octagon-alert" title=${error.message}>
  ${error.hint && html`<p class="muted"><${Words} text=${error.hint} /></p>`}
  ${error.status === 404 && html`<p><a href="#/">Go home</a></p>`}
  ${retry && html`<button onClick=${retry}>Try again</button>`}
</${Message}>`;
