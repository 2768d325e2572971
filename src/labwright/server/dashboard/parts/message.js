// A page or a panel that has nothing to show says why, and what to do.

import { html } from "../ui.js";
import { Icon } from "./icon.js";

export function Message({ icon, title, children }) {
  return html`<div class="message">
    ${icon && html`<${Icon} name=${icon} size="28" />`}
    <h2>${title}</h2>
    ${children}
  </div>`;
}

export const Problem = ({ error, retry }) => html`<${Message} icon="octagon-alert" title=${error.message}>
  ${error.hint && html`<p class="muted">${error.hint}</p>`}
  ${retry && html`<button onClick=${retry}>Try again</button>`}
</${Message}>`;
