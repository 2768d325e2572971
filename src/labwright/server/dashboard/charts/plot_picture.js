// A plot as a file: larger than on the page, with its name and what each line is, so that it can be read elsewhere.

import { saveBlob } from "../data/api.js";
import { unturned } from "../format.js";

const SIZE = { width: 960, height: 440 };
const MARGIN = 16;
const LINE = 20;
const NAMED = 12;

// `lines`: { name, color } each, colours as the style sheet names them.
export async function savePicture(plot, file, title, lines) {
  const onPage = { width: plot.width, height: plot.height };
  plot.setSize(SIZE);
  await null; // drawn by now, and back in its place before the page is
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
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const paint = (name) => style.getPropertyValue(name).trim();
  pen.fillStyle = paint("--bg"); // a transparent picture is unreadable in a dark viewer
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawn, 0, head * ratio);
  pen.scale(ratio, ratio);
  write(pen, title, MARGIN, MARGIN + 12, paint("--text"), "600 14px system-ui, sans-serif");
  named.forEach(({ name, color }, at) => {
    const y = MARGIN + 12 + LINE * (at + 1);
    if (color) write(pen, "■", MARGIN, y, paint(color), "12px system-ui, sans-serif");
    write(pen, name, MARGIN + 16, y, paint("--muted"), "12px system-ui, sans-serif");
  });
  return canvas;
}

function write(pen, text, x, y, color, font) {
  pen.fillStyle = color;
  pen.font = font;
  pen.fillText(unturned(text), x, y);
}
