// What keys do with the plot that has the focus: arrows move the reading, + and - zoom around it, 0 shows everything again.

const MOVES = 40; // across a plot
const LOGARITHMIC = 3; // as uPlot numbers it

export const KEYS = "ArrowLeft ArrowRight + - 0";

export function onPlotKey(event, plot, zoom) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const deed = {
    ArrowLeft: () => move(plot, -1),
    ArrowRight: () => move(plot, 1),
    "+": () => scale(plot, zoom, 0.5),
    "=": () => scale(plot, zoom, 0.5),
    "-": () => scale(plot, zoom, 2),
    0: () => (zoom.value = null),
  }[event.key];
  if (!deed) return;
  event.preventDefault();
  deed();
}

function move(plot, way) {
  const width = plot.over.clientWidth;
  const from = plot.cursor.left < 0 ? (way > 0 ? 0 : width) : plot.cursor.left;
  plot.setCursor({ left: Math.max(0, Math.min(width, from + (way * width) / MOVES)), top: 0 }, true, true);
}

// What is read stays where it is; without a reading, the middle does. From what was asked for last: a plot is drawn later.
function scale(plot, zoom, factor) {
  const { distr, min: from, max: to } = { ...plot.scales.x, ...zoom.value };
  const [there, back] = distr === LOGARITHMIC ? [Math.log, Math.exp] : [Number, Number];
  const part = plot.cursor.left < 0 ? 0.5 : plot.cursor.left / plot.over.clientWidth;
  const size = (there(to) - there(from)) * factor;
  const first = there(from) + (size / factor - size) * part;
  const [min, max] = [back(first), back(first + size)];
  const x = plot.data[0];
  const slack = (max - min) * 1e-6; // there and back again is not exact
  if (min - slack <= x[0] && max + slack >= x.at(-1)) zoom.value = null;
  else if (max - min > Math.abs(max) * 1e-9) zoom.value = { min, max };
}
