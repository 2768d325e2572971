// The way in when there is no token, or when the server did not take it.

import { whatIsWrongWith } from "../data/api.js";
import { signIn, whyOut } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { Icon } from "../ui/icon.js";

export function SignInPage() {
  const field = useRef(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  useTitle("Sign in");
  useEffect(() => {
    field.current.focus();
  }, []);

  const onSubmit = async (event) => {
    event.preventDefault();
    const token = field.current.value.trim();
    if (!token) return setProblem("Paste the token first.");
    setBusy(true);
    const wrong = await whatIsWrongWith(token);
    if (!wrong) return signIn(token);
    setProblem(wrong);
    setBusy(false);
  };
  const why = problem || whyOut.value;
  return html`<main class="signin">
    <form class="card" onSubmit=${onSubmit}>
      <h1>
        <${Icon} name="flask-conical" size="22" />
        Labwright
      </h1>
      ${
        why &&
        html`<p class="signin-why" role="alert">
          ${why}
        </p>`
      }
      <label>
        Token
        <input ref=${field} type="password" name="token" autocomplete="current-password" spellcheck=${false} />
      </label>
      <button class="primary" disabled=${busy}>
        Sign in
      </button>
      <p class="muted small">
        The link that <code>labwright up</code> prints signs you in. Or show the token in the project's folder and
        paste it:
      </p>
      <pre class="teach">labwright token --show</pre>
    </form>
  </main>`;
}
