"""List suggestions, accept one into a skill or a template of the project, or dismiss it.

Suggestions are stored in the log of their conversation. Accepting writes the file first and records the answer after: a
kill in between leaves a suggestion that can be accepted again, and nothing is written twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict, Forbidden, Invalid, NotFound
from labwright.domain.event import CHAT_HINT, Hint
from labwright.domain.session import PieceKind, Suggestion, SuggestionStatus
from labwright.files import write_whole
from labwright.services import skills
from labwright.store import sessions

View = dict[str, Any]
SKILL = "workflow-improvements"  # the default target; every conversation is shown it
_TEMPLATES = "templates"
_FILE = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
_NEW_SKILL = """\
---
name: {name}
description: What improves work in this project, as learned in earlier conversations and accepted by a person.
metadata:
  title: {title}
---

Work this way in this project:

"""


def page(lab: Lab, session_id: str | None, status: SuggestionStatus | None) -> list[View]:
    """Return suggestions, newest first."""
    newest = {data["id"]: (session, data) for session, data in sessions.suggestions(lab.db.reader(), session_id)}
    views = [{"session_id": session, **data} for session, data in reversed(newest.values())]
    return [view for view in views if status is None or view["status"] == status]


def accept_into_skill(lab: Lab, suggestion_id: str, name: str, actor: Actor) -> View:
    session_id, suggestion = _pending(lab, suggestion_id)
    printable = "".join(letter if letter.isprintable() else " " for letter in suggestion.text)
    line = re.sub(r"\s+", " ", printable).replace("{{", "{ {").strip()  # one line, without template variables
    _add_to_skill(lab, name, f"- {line}", actor)
    return _answer(lab, session_id, suggestion.answered(SuggestionStatus.ACCEPTED, str(actor), f"skill {name}"), actor)


def accept_into_template(lab: Lab, suggestion_id: str, name: str, actor: Actor) -> View:
    session_id, suggestion = _pending(lab, suggestion_id)
    if not suggestion.template:
        raise Conflict(f"Suggestion {suggestion_id} has no template.", hint="Accept it into a skill.")
    path = _write_template(lab, name, suggestion.template)
    return _answer(lab, session_id, suggestion.answered(SuggestionStatus.ACCEPTED, str(actor), path), actor)


def dismiss(lab: Lab, suggestion_id: str, actor: Actor) -> View:
    session_id, suggestion = _pending(lab, suggestion_id)
    return _answer(lab, session_id, suggestion.answered(SuggestionStatus.DISMISSED, str(actor)), actor)


def _pending(lab: Lab, suggestion_id: str) -> tuple[str, Suggestion]:
    view = next((view for view in page(lab, None, None) if view["id"] == suggestion_id), None)
    if view is None:
        raise NotFound(f"There is no suggestion {suggestion_id}.", hint="List them with GET /suggestions.")
    suggestion = Suggestion.from_dict(view)
    suggestion.answered(SuggestionStatus.DISMISSED, "")  # refuses a suggestion that was answered before
    return view["session_id"], suggestion


def _answer(lab: Lab, session_id: str, answered: Suggestion, actor: Actor) -> View:
    with lab.db.transaction() as tx:
        before = sessions.get(tx.connection, session_id)
        piece = (PieceKind.SUGGESTION, answered.to_dict())
        sessions.change(tx, before, sessions.append(tx, before, [piece]), str(actor))
        sessions.tell_of_suggestions(tx, before, [piece], str(actor))
    lab.publish_hint(Hint(CHAT_HINT, session_id=session_id))
    return {"session_id": session_id, **answered.to_dict()}


def _add_to_skill(lab: Lab, name: str, line: str, actor: Actor) -> None:
    try:
        skill = skills.get(lab, name)
    except NotFound:
        title = name.replace("-", " ").capitalize()
        skills.create(lab, f"{_NEW_SKILL.format(name=name, title=title)}{line}\n", actor)
        return
    if skill["source"] != "project":
        hint = f"Save a skill of the project with this name first, or accept it into {SKILL}."
        raise Forbidden(f"{name} is built in and cannot be changed.", hint=hint)
    if line not in skill["text"].splitlines():
        skills.replace(lab, name, f"{skill['text'].rstrip()}\n{line}\n", actor)


def _write_template(lab: Lab, name: str, text: str) -> str:
    if not _FILE.fullmatch(name):
        raise Invalid(
            f"{name[:100]!r} is not a valid name for a template.", hint="Use a file name, such as lr-sweep.yaml."
        )
    path = Path(_TEMPLATES, name)
    target = lab.paths.project / path
    if not target.parent.resolve().is_relative_to(lab.paths.project.resolve()):
        raise Conflict(f"{_TEMPLATES}/ is outside of the project.", hint="Make it a folder of the project.")
    if target.is_symlink() or (target.exists() and target.read_bytes() != text.encode()):
        raise Conflict(f"{path} already exists.", hint="Choose another name.")
    target.parent.mkdir(exist_ok=True)
    write_whole(target, text.encode())
    return str(path)
