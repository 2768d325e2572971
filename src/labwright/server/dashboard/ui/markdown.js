// Markdown as elements, made from marked's tokens. No HTML is parsed, so HTML in the text is shown as text. Images come
// from `picture(href)`; otherwise their text is shown. `draw` may override text(text), source(href) and pieces(), which
// draw text, links and code.

import { h, html, useMemo } from "../view.js";
import { Code } from "./code.js";
import { lexer } from "../vendor/marked.js";

const SAFE_LINK = /^(https?:|mailto:|#\/)/i;

const same = (text) => text;
const asText = { text: same, source: same, pieces: () => same };

export function Markdown({ text, picture, draw = asText }) {
  const tokens = useMemo(() => lexer(text), [text]);
  return html`<div class="markdown">${blocks(tokens, { picture, ...asText, ...draw })}</div>`;
}

const blocks = (tokens, draw) => tokens.map((token) => block(token, draw));

function block(token, draw) {
  const inner = () => inlines(token.tokens ?? [], draw);
  switch (token.type) {
    case "heading":
      return h(`h${Math.min(6, token.depth + 1)}`, {}, inner()); // the page has its own h1
    case "paragraph":
      return html`<p>${inner()}</p>`;
    case "text":
      return token.tokens ? inner() : draw.text(token.text);
    case "code":
      return html`<${Code} text=${token.text} pieces=${draw.pieces} language=${(token.lang ?? "").split(/\s/)[0]} />`;
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens, draw)}</blockquote>`;
    case "list":
      return h(
        token.ordered ? "ol" : "ul",
        token.ordered && token.start !== 1 ? { start: token.start } : {},
        token.items.map((item) => listItem(item, draw)),
      );
    case "table":
      return table(token, draw);
    case "hr":
      return html`<hr />`;
    case "html":
      return html`<p>${draw.text(token.text)}</p>`;
    default:
      return null; // blank lines, link definitions
  }
}

function listItem(item, draw) {
  const inner = item.tokens.filter(({ type }) => type !== "checkbox").map((token) => block(token, draw));
  if (!item.task) return html`<li>${inner}</li>`;
  return html`<li class="task">
    <span class="task-box" role="img" aria-label=${item.checked ? "done" : "to do"}>
      ${item.checked ? "☑" : "☐"}
    </span>
    <span>${inner}</span>
  </li>`;
}

function table(token, draw) {
  const cell = (kind) => (one, at) =>
    h(
      kind,
      { class: token.align[at] === "right" ? "num" : undefined, scope: kind === "th" ? "col" : undefined },
      inlines(one.tokens, draw),
    );
  return html`<div class="wide" tabindex="0" role="region" aria-label="Table">
    <table class="grid-table">
      <thead>
        <tr>${token.header.map(cell("th"))}</tr>
      </thead>
      <tbody>
        ${token.rows.map((row) => html`<tr>${row.map(cell("td"))}</tr>`)}
      </tbody>
    </table>
  </div>`;
}

const inlines = (tokens, draw) => tokens.map((token) => inline(token, draw));

function inline(token, draw) {
  const inner = () => inlines(token.tokens ?? [], draw);
  switch (token.type) {
    case "strong":
      return html`<strong>${inner()}</strong>`;
    case "em":
      return html`<em>${inner()}</em>`;
    case "del":
      return html`<del>${inner()}</del>`;
    case "codespan":
      return html`<code>${draw.text(token.text)}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return link(draw.source(token.href), inner());
    case "image":
      return (
        draw.picture?.(token.href, token.text) ??
        html`<span class="muted">${draw.text(token.text || token.href)}</span>`
      );
    case "text":
      return token.tokens ? inner() : draw.text(token.text);
    default:
      return draw.text(token.text ?? token.raw);
  }
}

// External links open in a new window without a referrer. Unsafe links are shown as text.
function link(href, inner) {
  if (!SAFE_LINK.test(href)) return html`<span title=${href}>${inner}</span>`;
  if (href.startsWith("#")) return html`<a href=${href}>${inner}</a>`;
  return html`<a href=${href} target="_blank" rel="noreferrer noopener">
    ${inner}
  </a>`;
}
