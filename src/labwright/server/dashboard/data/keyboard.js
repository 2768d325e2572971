// Keyboard shortcuts, outside of text fields. A page adds its own while it is shown.

import { useLayoutEffect, useRef } from "../view.js";

const SEQUENCE_MS = 1200;
const layers = [];
let prefix = "";
let prefixTimer = 0;

const isTyping = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "Enter" && event.target.closest?.("a, button, summary")) return; // the browser activates it
  const name = prefix ? `${prefix} ${event.key}` : event.key;
  const layer = layers.findLast((keys) => name in keys.current);
  if (layer) {
    event.preventDefault();
    layer.current[name](event);
  }
  remember(!layer && event.key === "g" && !prefix ? "g" : "");
}

function remember(key) {
  prefix = key;
  clearTimeout(prefixTimer);
  if (key) prefixTimer = setTimeout(() => (prefix = ""), SEQUENCE_MS);
}

export function startKeyboard(keys) {
  layers.unshift({ current: keys });
  document.addEventListener("keydown", onKey);
}

// By reference, so that quick keys always reach the newest handlers; in a layout effect, so that keys work from the
// first paint on.
export function useKeys(keys) {
  const layer = useRef(keys);
  layer.current = keys;
  useLayoutEffect(() => {
    layers.push(layer);
    return () => layers.splice(layers.indexOf(layer), 1);
  }, []);
}

// Let j and k move through the links of a list.
export function useListKeys(box) {
  const step = (by) => {
    const links = [...(box.current?.querySelectorAll("li > a") ?? [])];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))]?.focus();
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
}
