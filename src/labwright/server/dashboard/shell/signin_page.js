// The sign-in page, shown without a token or after the server refused it.

import { html, useEffect, useRef, useState } from "../view.js";
import { tokenProblem } from "../data/api.js";
import { signIn, signOutReason } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
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
    const wrong = await tokenProblem(token);
    if (!wrong) return signIn(token);
    setProblem(wrong);
    setBusy(false);
  };
  const why = problem || signOutReason.value;
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
        Open the link that <code>labwright up</code> prints. Or run this in the project folder and paste the token:
      </p>
      <pre class="teach">labwright token --show</pre>
    </form>
  </main>`;
}
