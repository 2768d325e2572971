// Where the boxes of a workflow stand and how its lines run: each step to the right of all that feed it, and a line that goes
// past other columns has a lane free of boxes there, so that it does not seem to lead to one of them. Pure.

export const BOX = { width: 204, height: 52 };
const GAP = { x: 70, y: 24 };
const LANE = 12;
const EDGE = 16;

export function layout({ steps, edges }) {
  const columnOf = columns(steps, edges);
  const last = Math.max(...columnOf.values());
  const heights = new Map(); // `step column` → how high the middle of it, or of the lane of its lines, is there
  const ends = [];
  for (let column = 0; column <= last; column += 1) ends.push(fill(column, { steps, edges, columnOf, heights }));
  const at = new Map(steps.map(({ id }) => [id, { x: xOf(columnOf.get(id)), y: heights.get(spot(id, columnOf.get(id))) - BOX.height / 2 }]));
  const lines = edges.map((edge) => ({ key: edge.join(" "), path: lineOf(edge, columnOf, heights) }));
  return { at, lines, width: xOf(last) + BOX.width + EDGE, height: Math.max(...ends) - GAP.y + EDGE };
}

const spot = (id, column) => `${id} ${column}`;
const xOf = (column) => EDGE + column * (BOX.width + GAP.x);

// One more than the furthest of what feeds it. A workflow that goes round in a circle is drawn all the same.
function columns(steps, edges) {
  const found = new Map();
  const column = (id, path = new Set()) => {
    if (found.has(id) || path.has(id)) return found.get(id) ?? 0;
    const before = edges.filter(([, to]) => to === id).map(([from]) => column(from, new Set([...path, id])) + 1);
    found.set(id, Math.max(0, ...before));
    return found.get(id);
  };
  for (const { id } of steps) column(id);
  return found;
}

// The boxes of a column and the lanes through it from above, each about as high as what it comes from: then few lines cross.
function fill(column, { steps, edges, columnOf, heights }) {
  const before = (id) => heights.get(spot(id, column - 1));
  const sources = (id) => edges.filter(([from, to]) => to === id && columnOf.get(from) < column).map(([from]) => before(from));
  const passes = (id) => columnOf.get(id) < column && edges.some(([from, to]) => from === id && columnOf.get(to) > column);
  const boxes = steps.filter(({ id }) => columnOf.get(id) === column).map(({ id }) => ({ id, height: BOX.height, wish: mean(sources(id)) }));
  const lanes = steps.filter(({ id }) => passes(id)).map(({ id }) => ({ id, height: LANE, wish: before(id) }));
  let y = EDGE;
  for (const { id, height } of [...boxes, ...lanes].sort((one, other) => one.wish - other.wish)) {
    heights.set(spot(id, column), y + height / 2);
    y += height + GAP.y;
  }
  return y;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

function lineOf([from, to], columnOf, heights) {
  const place = (id, column) => ({ x: xOf(column), y: heights.get(spot(id, column)) });
  const rightOf = ({ x, y }) => ({ x: x + BOX.width, y });
  let here = rightOf(place(from, columnOf.get(from)));
  let path = `M${here.x} ${here.y}`;
  for (let column = columnOf.get(from) + 1; column < columnOf.get(to); column += 1) {
    const lane = place(from, column);
    path += `${bend(here, lane)}H${lane.x + BOX.width}`;
    here = rightOf(lane);
  }
  return path + bend(here, place(to, columnOf.get(to)));
}

function bend(from, to) {
  const half = Math.max(24, (to.x - from.x) / 2);
  return `C${from.x + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
}
