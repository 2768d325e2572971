"""What a person may hand in: a goal, a report, a saved plan. Read within bounds, as words and never as orders."""

from __future__ import annotations

from labwright.domain.errors import Invalid, TooLarge

MOST_GOAL_CHARACTERS = 20_000
MOST_REPORT_CHARACTERS = 1_000_000
_LIGATURES = {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl"}
_AS_TYPED = {**_LIGATURES, "\f": "\n", "\ufeff": ""}


def report_text(text: str) -> str:
    """A report as it is kept: text, Markdown, or the text of a PDF without its page breaks and joined letters."""
    if text.startswith("%PDF-"):
        raise Invalid(
            "The report is a PDF file, not its text.", hint="Take the text out: pdftotext paper.pdf paper.txt"
        )
    for joined, letters in _AS_TYPED.items():
        text = text.replace(joined, letters)
    return text


def check_request(goal: str, report: str, plan: str) -> None:
    """Before anything is written."""
    if not goal.strip() and not report.strip() and not plan.strip():
        hint = "Say what to vary, over which values, by which metric."
        raise Invalid("The goal is empty.", hint=hint, field=("goal",))
    if len(goal) > MOST_GOAL_CHARACTERS:
        hint = "Say it in a few sentences; hand in the rest as a report."
        raise TooLarge(f"The goal has {len(goal):,} characters; at most {MOST_GOAL_CHARACTERS:,} are read.", hint=hint)
    _check_length("report", report)
    _check_length("plan", plan)


def _check_length(what: str, text: str) -> None:
    if len(text) > MOST_REPORT_CHARACTERS:
        words = f"The {what} has {len(text):,} characters; at most {MOST_REPORT_CHARACTERS:,} are read."
        raise TooLarge(words, hint="Give the part that describes the experiment.")
