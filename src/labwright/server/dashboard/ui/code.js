// Highlighted source code. The highlighter's tree becomes elements; no markup is parsed.

import { h, html, useMemo } from "../view.js";
import bash from "../vendor/highlight-bash.js";
import diff from "../vendor/highlight-diff.js";
import json from "../vendor/highlight-json.js";
import markdown from "../vendor/highlight-markdown.js";
import python from "../vendor/highlight-python.js";
import yaml from "../vendor/highlight-yaml.js";
import highlighter from "../vendor/highlight.js";

const MAX_LENGTH = 200_000; // longer text is not highlighted
for (const [name, grammar] of Object.entries({ bash, diff, json, markdown, python, yaml }))
  highlighter.registerLanguage(name, grammar);
const BY_SUFFIX = {
  py: "python",
  sh: "bash",
  json: "json",
  jsonl: "json",
  yaml: "yaml",
  yml: "yaml",
  md: "markdown",
  diff: "diff",
  patch: "diff",
};

export const languageOf = (path) => BY_SUFFIX[path.split(".").pop().toLowerCase()] ?? "";

const asText = () => (text) => text;

// `pieces()` returns a function that draws one piece of text after the other.
export function Code({ text, language = "", label = "Code", pieces = asText }) {
  const nodes = useMemo(() => highlighted(text, language), [text, language]);
  const draw = pieces();
  return html`<pre class="code" tabindex="0" role="region" aria-label=${label}>
    <code>${nodes.map((node) => drawn(node, draw))}</code>
  </pre>`;
}

function highlighted(text, language) {
  if (!highlighter.getLanguage(language) || text.length > MAX_LENGTH) return [text];
  return highlighter.highlight(text, { language, ignoreIllegals: true })._emitter.rootNode.children;
}

function drawn(node, draw) {
  if (typeof node === "string") return draw(node);
  const children = node.children.map((child) => drawn(child, draw));
  return node.scope ? h("span", { class: `hl-${node.scope.split(".")[0]}` }, children) : children;
}
