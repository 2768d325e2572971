// Save a plot as a PNG: larger than on the page, with a title and a legend.

import { withoutBidi } from "../format.js";
import { saveBlob } from "../data/api.js";

const SIZE = { width: 960, height: 440 };
const MARGIN = 16;
const LINE = 20;
const NAMED = 12;

// `lines`: { name, color } each; colors are CSS variables.
export async function savePicture(plot, file, title, lines) {
  const onPage = { width: plot.width, height: plot.height };
  plot.setSize(SIZE);
  await null; // wait until uPlot has drawn; the size is restored before the next paint
  const canvas = framed(plot.ctx.canvas, title, lines);
  plot.setSize(onPage);
  canvas.toBlob((blob) => saveBlob(blob, file));
}

function framed(drawn, title, lines) {
  const ratio = drawn.width / SIZE.width;
  const named = lines.length > NAMED ? [...lines.slice(0, NAMED), { name: `and ${lines.length - NAMED} more` }] : lines;
  const head = MARGIN + LINE * (1 + named.length);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [drawn.width, drawn.height + head * ratio];
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const paint = (name) => style.getPropertyValue(name).trim();
  context.fillStyle = paint("--bg"); // a transparent image is unreadable in a dark viewer
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(drawn, 0, head * ratio);
  context.scale(ratio, ratio);
  write(context, title, MARGIN, MARGIN + 12, paint("--text"), "600 14px system-ui, sans-serif");
  named.forEach(({ name, color }, at) => {
    const y = MARGIN + 12 + LINE * (at + 1);
    if (color) write(context, "■", MARGIN, y, paint(color), "12px system-ui, sans-serif");
    write(context, name, MARGIN + 16, y, paint("--muted"), "12px system-ui, sans-serif");
  });
  return canvas;
}

function write(context, text, x, y, color, font) {
  context.fillStyle = color;
  context.font = font;
  context.fillText(withoutBidi(text), x, y);
}
