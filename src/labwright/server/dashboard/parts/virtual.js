// Of a long list only what can be seen is in the page. All rows have the same height.

import { useLayoutEffect, useRef, useState } from "../ui.js";

const OVERSCAN = 12;

export function useVirtual(count, rowHeight) {
  const ref = useRef(null);
  const [view, setView] = useState({ top: 0, height: 800 });

  useLayoutEffect(() => {
    const box = ref.current;
    const look = () => setView({ top: box.scrollTop, height: box.clientHeight });
    const watcher = new ResizeObserver(look);
    watcher.observe(box);
    box.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      watcher.disconnect();
      box.removeEventListener("scroll", look);
    };
  }, []);

  const first = Math.max(0, Math.min(count, Math.floor(view.top / rowHeight)) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
  return { ref, first, last, before: first * rowHeight, after: Math.max(0, count - last) * rowHeight };
}

// `head` is the height of what stays at the top of the box and covers it.
export function scrollToRow(box, index, rowHeight, head = 0) {
  const top = index * rowHeight;
  const bottom = top + rowHeight + head;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}
