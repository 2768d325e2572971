// What is around every page: the bar, the banner, the news.

import { signOut } from "../session.js";
import { pendingAlerts, tryConnecting } from "../store.js";
import { connection } from "../stream.js";
import { html, useLayoutEffect, useRef } from "../ui.js";
import { Confirm } from "./confirm.js";
import { Icon } from "./icon.js";
import { Toasts } from "./toast.js";

const PLACES = [
  { page: "runs", label: "Runs", icon: "list", href: "#/runs" },
  { page: "alerts", label: "Alerts", icon: "bell", href: "#/alerts" },
];

export function Shell({ page, id, children }) {
  const main = useRef(null);
  useLayoutEffect(() => main.current.scrollTo(0, 0), [page, id]);
  return html`<div class="shell">
    <${Bar} page=${page} />
    <div class="stage"><${Banner} /><main ref=${main}>${children}</main></div>
    <${Toasts} /><${Confirm} />
  </div>`;
}

function Bar({ page }) {
  return html`<nav class="bar" aria-label="Places">
    <a class="brand" href="#/runs" title="Labwright"><${Icon} name="flask-conical" size="18" /><span>Labwright</span></a>
    ${PLACES.map(
      (place) => html`<a key=${place.page} href=${place.href} aria-current=${place.page === page ? "page" : undefined}>
        <${Icon} name=${place.icon} /><span>${place.label}</span>
        ${place.page === "alerts" && html`<${AlertCount} />`}
      </a>`,
    )}
    <a href="docs" target="_blank" rel="noreferrer"><${Icon} name="book-open" /><span>Help</span></a>
    <div class="bar-end">
      <button class="bare" onClick=${() => signOut("You signed out.")}><${Icon} name="log-out" /><span>Sign out</span></button>
    </div>
  </nav>`;
}

function AlertCount() {
  const count = pendingAlerts.value.length;
  return count ? html`<span class="count" aria-label="${count} open">${count}</span>` : null;
}

function Banner() {
  if (connection.value !== "gone") return null;
  return html`<div class="banner" role="alert">
    <${Icon} name="triangle-alert" />
    <span><strong>The server does not answer.</strong> Runs go on without it. Start it with <code>labwright up</code>;
      this page comes back by itself.</span>
    <button onClick=${tryConnecting}>Try now</button>
  </div>`;
}
