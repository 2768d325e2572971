"""What a person may hand in: a goal, a report, a saved plan. Read within bounds, as words and never as orders."""

from __future__ import annotations

from labwright.domain.errors import Invalid

MOST_GOAL_CHARACTERS = 20_000
MOST_REPORT_BYTES = 1 << 20
_LIGATURES = {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\f": "\n"}


def report_text(content: bytes) -> str:
    """A report as it is kept: text, Markdown, or the text of a PDF with its page breaks and joined letters."""
    if len(content) > MOST_REPORT_BYTES:
        raise _too_long("report", f"{len(content) / 1e6:.1f} MB", f"{MOST_REPORT_BYTES >> 20} MB")
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
    for joined, letters in _LIGATURES.items():
        text = text.replace(joined, letters)
    return text


def check_request(goal: str, report: str, plan: str) -> None:
    """Before anything is written."""
    if not goal.strip() and not report.strip() and not plan.strip():
        raise Invalid("The goal is empty.", hint="Say what to vary, over which values, by which metric.")
    if len(goal) > MOST_GOAL_CHARACTERS:
        raise _too_long("goal", f"{len(goal):,} characters", f"{MOST_GOAL_CHARACTERS:,}")
    for name, text in (("report", report), ("plan", plan)):
        if len(text.encode(errors="replace")) > MOST_REPORT_BYTES:
            raise _too_long(name, f"{len(text) / 1e6:.1f} MB", f"{MOST_REPORT_BYTES >> 20} MB")


def _too_long(what: str, size: str, most: str) -> Invalid:
    hint = (
        "Give the part that says what to try."
        if what != "goal"
        else "Say it in a few sentences; hand in the rest as a report."
    )
    return Invalid(f"The {what} has {size}; at most {most} are read.", hint=hint)
