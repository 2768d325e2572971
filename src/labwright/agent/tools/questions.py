"""Asking the person, while a plan is made: three questions at most, and the server counts."""

from __future__ import annotations

from typing import Any

from labwright.agent.tools.tool import Deed, EndsTurn, Json, Tool, several
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.session import EndReason

MOST_QUESTIONS = 3
_GO_ON = "Go on with what is known, and say in the plan what you assume."


def ask_user(deed: Deed, questions: list[str]) -> Json:
    wanted = [question.strip() for question in questions if question.strip()]
    if not wanted:
        raise Invalid("There is no question.", hint="Give each as one sentence.")
    if deed.questions_left <= 0:
        raise Conflict(f"{MOST_QUESTIONS} questions were asked already; no more may be.", hint=_GO_ON)
    if len(wanted) > deed.questions_left:
        hint = f"Leave out what you can find out or assume. {_GO_ON}"
        raise Conflict(f"{deed.questions_left} of {MOST_QUESTIONS} questions are left, not {len(wanted)}.", hint=hint)
    answer: dict[str, Any] = {"asked": wanted, "note": "the next message of the user answers them"}
    raise EndsTurn(EndReason.QUESTIONS, answer, questions=wanted)


ASK_USER = Tool(
    name="ask_user",
    description=(
        f"Ask the user what you cannot find out and must not assume; it ends the turn. {MOST_QUESTIONS} questions at "
        "most before there is a plan, counted by the server, so ask all of them at once."
    ),
    do=ask_user,
    takes={"questions": several("each a sentence, with values to choose from where that helps")},
    needs=("questions",),
)
