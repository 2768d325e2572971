// Virtual lists: only visible rows are in the page. All rows have the same height.

import { useLayoutEffect, useRef, useState } from "../view.js";

const OVERSCAN = 12;
const STEP = 4; // rows to scroll before the next redraw

export function useVirtual(count, rowHeight) {
  const ref = useRef(null);
  const [view, setView] = useState({ top: 0, bottom: Math.ceil(800 / rowHeight) }); // rows

  useLayoutEffect(() => {
    const box = ref.current;
    const measure = () => {
      const top = Math.floor(box.scrollTop / rowHeight / STEP) * STEP;
      const bottom = Math.ceil((box.scrollTop + box.clientHeight) / rowHeight / STEP) * STEP;
      setView((now) => (now.top === top && now.bottom === bottom ? now : { top, bottom }));
    };
    const watcher = new ResizeObserver(measure);
    watcher.observe(box);
    box.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      watcher.disconnect();
      box.removeEventListener("scroll", measure);
    };
  }, [rowHeight]);

  const first = Math.max(0, Math.min(count, view.top) - OVERSCAN);
  const last = Math.min(count, view.bottom + OVERSCAN);
  return { ref, first, last, before: first * rowHeight, after: Math.max(0, count - last) * rowHeight };
}

// Scroll a row into view. `head` is the height of a sticky header.
export function scrollToRow(box, index, rowHeight, head = 0) {
  const top = index * rowHeight;
  const bottom = top + rowHeight + head;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}
