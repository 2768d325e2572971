// A page or a panel that has nothing to show says why, and what to do.

import { PLACES } from "../data/places.js";
import { route } from "../data/router.js";
import { html, useEffect, useState } from "../view.js";
import { Icon } from "./icon.js";

// A text of the server's, with what stands between backticks as code.
export const Words = ({ text }) =>
  text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? html`<code key=${at}>${part}</code>` : part));

export function Message({ icon, title, children }) {
  return html`<div class="message">
    ${icon && html`<${Icon} name=${icon} size="28" />`}
    <h2>${title}</h2>
    ${children}
  </div>`;
}

export const Problem = ({ error, retry }) =>
  html`<${Message} icon="octagon-alert" title=${error.message}>
    ${
      error.status === 404 && !retry
        ? html`<${NotThere} />`
        : error.hint &&
          html`<p class="muted">
            <${Words} text=${error.hint} />
          </p>`
    }
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </${Message}>`;

// The server's own hint names calls that list what there is; here a page does.
function NotThere() {
  const place = PLACES.find(({ page }) => page === route.value.page) ?? PLACES[0];
  return html`<p class="muted">It was deleted, or it belongs to another project.</p>
  <p>
    <a href=${place.href}>${place.label}</a>
  </p>`;
}

// A part whose module is large: fetched when it is first shown.

export function Lazy({ load, ...props }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    load().then(
      (module) => setFound({ Show: module.default }),
      () => setFound({ error: new Error("This part could not be loaded.") }),
    );
  }, []);
  if (!found) return html`<div class="loading" aria-busy="true"></div>`;
  if (found.error) return html`<${Problem} error=${found.error} />`;
  return html`<${found.Show} ...${props} />`;
}
