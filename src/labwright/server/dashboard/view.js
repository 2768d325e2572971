// Preact, signals and htm. Components import them from here, not from vendor/.

import { withoutBidi } from "./format.js";
import htm from "./vendor/htm.js";
import { Component, h, options, render } from "./vendor/preact.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { batch, effect, signal, untracked } from "./vendor/signals.js";
export { Component, h, render };

// Markup as a tagged template. Values become text nodes or attributes, never markup.
export const html = htm.bind(h);

// Neutralize text-direction characters in everything that is shown or read aloud. Input values and links stay exact.
const READ_ALOUD = ["title", "aria-label"];
const before = options.vnode;
options.vnode = (vnode) => {
  const { type, props } = vnode;
  if (type === null && typeof props === "string") vnode.props = withoutBidi(props);
  if (typeof type === "string")
    for (const name of READ_ALOUD) if (typeof props[name] === "string") props[name] = withoutBidi(props[name]);
  before?.(vnode);
};
