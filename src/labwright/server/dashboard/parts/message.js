// A page or a panel that has nothing to show says why, and what to do.

import { PLACES } from "../places.js";
import { route } from "../router.js";
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
  ${error.status === 404 && !retry ? html`<${NotThere} />` : error.hint && html`<p class="muted"><${Words} text=${error.hint} /></p>`}
  ${retry && html`<button onClick=${retry}>Try again</button>`}
</${Message}>`;

// The server's own hint names calls that list what there is; here a page does.
function NotThere() {
  const place = PLACES.find(({ page }) => page === route.value.page) ?? PLACES[0];
  return html`<p class="muted">It was deleted, or it belongs to another project.</p><p><a href=${place.href}>${place.label}</a></p>`;
}
