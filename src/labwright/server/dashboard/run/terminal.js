// A terminal attached to a run: shows its output and sends keys.

import { withoutBidi } from "../format.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { address, runPath } from "../data/api.js";
import { token } from "../data/session.js";
import { resync } from "../data/store.js";
import "./terminal_style.js";
import { FitAddon } from "../vendor/xterm-fit.js";
import { Terminal as Screen } from "../vendor/xterm.js";

const CONNECTING = "Connecting…";
const LOST = "Connection lost.";
const PROTOCOLS = () => ["labwright.terminal", `labwright.token.${token.value}`]; // a WebSocket cannot send our headers

export default function Terminal({ run }) {
  const box = useRef(null);
  const [state, setState] = useState(CONNECTING);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const paint = (name) => style.getPropertyValue(name).trim();
    const screen = new Screen({
      fontFamily: paint("--mono"),
      fontSize: 12.5,
      cursorBlink: true,
      convertEol: !run.tty, // without a terminal the output has bare newlines
      screenReaderMode: true,
      theme: { background: "#0e0f12", foreground: "#e5e7eb", cursor: "#7aa7ff" },
    });
    const fit = new FitAddon();
    screen.loadAddon(fit);
    screen.open(box.current);
    fit.fit();
    const url = address(runPath(run.id, "/terminal"));
    url.protocol = url.protocol.replace("http", "ws");
    url.search = new URLSearchParams({ cols: screen.cols, rows: screen.rows });
    const socket = new WebSocket(url, PROTOCOLS());
    socket.binaryType = "arraybuffer";
    const tellSize = () =>
      socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify({ cols: screen.cols, rows: screen.rows }));
    socket.onopen = () => {
      setState("");
      tellSize();
      screen.focus();
    };
    const decoder = new TextDecoder(); // a character may be split over two messages
    socket.onmessage = ({ data }) => screen.write(withoutBidi(decoder.decode(data, { stream: true })));
    socket.onclose = ({ reason }) => setState(reason || LOST);
    const encoder = new TextEncoder();
    screen.onData((keys) => socket.readyState === WebSocket.OPEN && socket.send(encoder.encode(keys)));
    screen.onResize(tellSize);
    // Lets the keyboard focus leave the terminal.
    screen.attachCustomKeyEventHandler((event) => !(event.key === "Tab" && event.shiftKey));
    const watcher = new ResizeObserver(() => box.current?.clientWidth && fit.fit());
    watcher.observe(box.current);
    return () => {
      watcher.disconnect();
      socket.onclose = null;
      socket.close();
      screen.dispose();
    };
  }, [run.id, tries]);
  const connect = () => {
    setState(CONNECTING);
    setTries((count) => count + 1);
  };
  const connections = resync.value;
  useEffect(() => {
    if (state === LOST) connect(); // reconnect with the server
  }, [connections]);
  return html`<section class="stack" aria-label="Terminal">
    <p class="muted">
      ${run.tty ? "Keys are sent to the run." : "Input is sent to the run line by line."} Ctrl-C interrupts it;
      Shift-Tab leaves the terminal. Closing this page does not stop the run. In a shell:${" "}
      <code>labwright attach ${run.id}</code>
    </p>
    ${
      state &&
      html`<p class="hint-line">
        ${state} ${state !== CONNECTING && html`<button onClick=${connect}>Reconnect</button>`}
      </p>`
    }
    <div class="terminal" ref=${box}></div>
  </section>`;
}
