// A finger that moves sideways over a plot does what a mouse does with its button down; uPlot knows the mouse alone. Up and
// down it scrolls the page: `touch-action` in style/pages.css.

const NOTHING = { left: 0, top: 0, width: 0, height: 0 };

export function followFinger(plot, onSelected) {
  const { over } = plot;
  let from = null; // where it came down
  const placeOf = ({ clientX }) => Math.max(0, Math.min(over.clientWidth, clientX - over.getBoundingClientRect().left));
  const move = (event) => {
    if (from === null || !event.isPrimary) return;
    const at = placeOf(event);
    plot.setCursor({ left: at, top: 0 }, true, true);
    plot.setSelect({ left: Math.min(from, at), top: 0, width: Math.abs(at - from), height: over.clientHeight }, false);
  };
  const end = (then) => () => {
    if (from !== null) then();
    from = null;
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && event.isPrimary) from = placeOf(event);
  });
  over.addEventListener("pointermove", move);
  over.addEventListener("pointerup", end(onSelected));
  over.addEventListener("pointercancel", end(() => plot.setSelect(NOTHING, false))); // it scrolls
}
