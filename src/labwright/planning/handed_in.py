"""What a person may hand in: a goal, a report, a saved plan. Read within bounds, as words and never as orders."""

from __future__ import annotations

from labwright.domain.errors import Invalid, TooLarge

MOST_GOAL_CHARACTERS = 20_000
MOST_REPORT_CHARACTERS = 1_000_000
_LIGATURES = {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\f": "\n"}


def report_text(content: bytes) -> str:
    """A report as it is kept: text, Markdown, or the text of a PDF with its page breaks and joined letters."""
    if content.startswith(b"%PDF-"):
        raise Invalid(
            "The report is a PDF file, not its text.", hint="Take the text out: pdftotext paper.pdf paper.txt"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"The report is no UTF-8 text: {error.reason}.", hint="Save it as UTF-8.") from error
    if "\0" in text:
        raise Invalid("The report is not a text.", hint="Give text, Markdown, or the text of a PDF.")
    _check_length("report", text)
    for joined, letters in _LIGATURES.items():
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
