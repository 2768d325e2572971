"""The plan document's outline: lines, code fences, headers; which of them are wrong, missing or out of place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from labwright.domain.plan_document import OPTIONAL, TITLE, Block, Fault, Header

MOST_FAULTS = 100
_HEADER = re.compile(r" {0,3}(#{1,6})([ \t]*)(.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_TITLE_WORDS = re.compile(r"\W*plan\s*[:：](.*)", re.IGNORECASE)
_NEAR = {
    **{"".join(c for c in header.lower() if c.isalnum()): header for header in Header},
    "risksandmitigations": Header.RISKS,
    "risks": Header.RISKS,
    "improvements": Header.IMPROVEMENTS,
    "parameters": Header.PARAMETERS,
    "effort": Header.EFFORT,
}


class Faults:
    """Kept in order of lines, and not without end."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._left_out = 0

    def add(self, line: int, message: str, hint: str) -> None:
        if len(self._found) < MOST_FAULTS:
            self._found.append(Fault(line=line, message=message, hint=hint))
        else:
            self._left_out += 1

    def all(self) -> tuple[Fault, ...]:
        found = sorted(self._found, key=lambda fault: fault.line)
        if self._left_out:
            words = f"There are {self._left_out} more faults."
            found.append(Fault(line=found[-1].line, message=words, hint="Mend those above first."))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str  # without its end
    is_code: bool = False

    @property
    def is_blank(self) -> bool:
        return not self.text or self.text.isspace()


@dataclass(slots=True)
class Section:
    """A header that is one of ours, and the lines below it."""

    header: Header
    line: int
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Outline:
    blocks: list[Block]
    title: str
    title_line: int
    sections: dict[Header, Section]


@dataclass(slots=True)
class _Open:
    """What the next lines belong to."""

    line: int
    header: str  # the raw line
    raw: list[str] = field(default_factory=list)
    section: Section | None = None
    skipped: bool = False  # a header we do not know, or one for the second time

    def block(self) -> Block:
        return Block(self.line, self.header, "".join(self.raw))


def outline(text: str, faults: Faults) -> Outline:
    raw = text.split("\n")
    ended = [f"{line}\n" for line in raw[:-1]] + raw[-1:]
    readable = [raw[0].removeprefix("\ufeff"), *raw[1:]]  # the mark is told as a character that shows nothing
    lines = _with_fences([line.rstrip(" \t\r") for line in readable], faults)
    parts = [_Open(1, "")]
    seen = _Seen()
    for line, whole in zip(lines, ended, strict=True):
        found = None if line.is_code else _HEADER.fullmatch(line.text)
        opened = _header(line, whole, found, seen, faults) if found else None
        if opened:
            parts.append(opened)
        else:
            _add(parts[-1], line, whole, faults)
    _check_outline(seen, len(raw), faults)
    blocks = [part.block() for part in parts if part.header or part.raw]
    return Outline(blocks, seen.title, seen.title_line, {s.header: s for s in seen.sections})


@dataclass(slots=True)
class _Seen:
    title: str = ""
    title_line: int = 0
    sections: list[Section] = field(default_factory=list)


def _with_fences(texts: list[str], faults: Faults) -> list[Line]:
    """Headers in a code block are code. A fence ends with its own kind, at least as long, and nothing after it."""
    lines, fence, opened = [], "", 0
    for number, text in enumerate(texts, 1):
        match = _FENCE.fullmatch(text)
        was_code = bool(fence)
        if match and not fence and not (match[1][0] == "`" and "`" in match[2]):
            fence, opened = match[1], number
        elif match and fence and match[1].startswith(fence) and not match[2]:
            fence = ""
        lines.append(Line(number, text, was_code or bool(fence)))
    if fence:
        faults.add(opened, "The code block that begins here never ends.", f"Close it with a line of {fence}.")
    return lines


def _add(part: _Open, line: Line, whole: str, faults: Faults) -> None:
    part.raw.append(whole)
    if not line.is_code and "<!--" in line.text:
        faults.add(line.number, "An HTML comment hides text from the reader.", "Take it out, or write it as text.")
    if part.section:
        part.section.lines.append(line)
    elif not part.header and whole and line.number == 1:
        faults.add(line.number, f"Something stands before `{TITLE}`.", "Begin the plan with that header.")
    elif part.header and not part.skipped and not line.is_blank:
        faults.add(line.number, "Nothing may stand between the title and the Objective.", "Move it into a section.")
        part.skipped = True


def _header(line: Line, whole: str, match: re.Match[str], seen: _Seen, faults: Faults) -> _Open | None:
    _, gap, words = match.groups()
    title = _TITLE_WORDS.fullmatch(words)
    known = _NEAR.get("".join(c for c in words.lower() if c.isalnum())) if len(words) < 100 else None
    if title and not known:
        return _title(line, whole, title[1].strip(), seen, faults)
    if known:
        return _section(line, whole, known, seen, faults)
    if words and not gap:
        return None  # `#tag`: text
    faults.add(
        line.number,
        f"`{line.text.strip()[:60]}` is not a header of a plan.",
        f"The sections are: {', '.join(header.removeprefix('### ') for header in Header)}. "
        "Inside of one use bold text.",
    )
    return _Open(line.number, whole, skipped=True)


def _title(line: Line, whole: str, title: str, seen: _Seen, faults: Faults) -> _Open:
    if seen.title_line:
        faults.add(line.number, f"A second title; the first is on line {seen.title_line}.", "One plan, one title.")
        return _Open(line.number, whole, skipped=True)
    if seen.sections:
        faults.add(line.number, "The title stands after a section.", "Put it into the first line.")
    if not line.text.startswith(TITLE):
        faults.add(
            line.number, "The title has not the exact form.", f"Write `{TITLE} {title[:60] or 'a short title'}`."
        )
    elif not title or not line.text.startswith(f"{TITLE} "):
        faults.add(line.number, "The title is empty or not apart from the colon.", f"Write `{TITLE} a short title`.")
    seen.title, seen.title_line = title, line.number
    return _Open(line.number, whole)


def _section(line: Line, whole: str, header: Header, seen: _Seen, faults: Faults) -> _Open:
    if line.text != header:
        faults.add(line.number, f"`{line.text.strip()[:60]}` has not the exact form.", f"Write `{header}`.")
    before = {section.header: section.line for section in seen.sections}
    if header in before:
        faults.add(
            line.number, f"`{header}` stands here again; the first is on line {before[header]}.", "Join the two."
        )
        return _Open(line.number, whole, skipped=True)
    order = list(Header)
    later = [other for other in before if order.index(other) > order.index(header)]
    if later:
        faults.add(
            line.number, f"`{header}` stands after `{later[-1]}`.", f"Move it before `{min(later, key=order.index)}`."
        )
    section = Section(header, line.number)
    seen.sections.append(section)
    return _Open(line.number, whole, section=section)


def _check_outline(seen: _Seen, last_line: int, faults: Faults) -> None:
    if not seen.title_line:
        faults.add(1, "The title is missing.", f"Begin with `{TITLE} a short title`.")
    lines = {section.header: section.line for section in seen.sections}
    order = list(Header)
    for place, header in enumerate(order):
        if header not in lines and header not in OPTIONAL:
            following = next((other for other in order[place + 1 :] if other in lines), None)
            where = f"Put it before `{following}`." if following else "Put it at the end."
            faults.add(lines[following] if following else last_line, f"`{header}` is missing.", where)
