"""The outline of a plan document: lines, code fences, headers, list entries, and the format faults in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from labwright.domain.plan_document.document import OPTIONAL, TITLE, DocumentBlock, DocumentFault, Header

MOST_FAULTS = 100
_PLACEHOLDER = re.compile(r"<[^<>]{1,100}>")
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


class FaultList:
    """Faults in order of lines, up to a limit."""

    def __init__(self) -> None:
        self._found: list[DocumentFault] = []
        self._left_out = 0

    def add(self, line: int, message: str, hint: str) -> None:
        if len(self._found) < MOST_FAULTS:
            self._found.append(DocumentFault(line=line, message=message, hint=hint))
        else:
            self._left_out += 1

    def all(self) -> tuple[DocumentFault, ...]:
        found = sorted(self._found, key=lambda fault: fault.line)
        if self._left_out:
            message = f"There are {self._left_out} more faults."
            found.append(DocumentFault(line=found[-1].line, message=message, hint="Fix those above first."))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class DocumentLine:
    number: int
    text: str  # without the line end
    is_code: bool = False

    @property
    def is_blank(self) -> bool:
        return not self.text or self.text.isspace()


@dataclass(slots=True)
class Section:
    """A known header and the lines below it."""

    header: Header
    line: int
    lines: list[DocumentLine] = field(default_factory=list)


@dataclass(slots=True)
class Outline:
    blocks: list[DocumentBlock]
    title: str
    title_line: int
    sections: dict[Header, Section]


@dataclass(slots=True)
class _OpenBlock:
    """The block that the next lines belong to."""

    line: int
    header: str  # the raw line
    raw: list[str] = field(default_factory=list)
    section: Section | None = None
    skipped: bool = False  # an unknown or repeated header

    def block(self) -> DocumentBlock:
        return DocumentBlock(self.line, self.header, "".join(self.raw))


def outline(text: str, faults: FaultList) -> Outline:
    raw = text.split("\n")
    ended = [f"{line}\n" for line in raw[:-1]] + raw[-1:]
    readable = [raw[0].removeprefix("\ufeff"), *raw[1:]]  # the byte order mark is reported as an invisible character
    lines = _with_fences([line.rstrip(" \t\r") for line in readable], faults)
    parts = [_OpenBlock(1, "")]
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


def _with_fences(texts: list[str], faults: FaultList) -> list[DocumentLine]:
    """Mark the lines in code blocks. A block ends with a fence of the same kind and at least the same length."""
    lines, fence, opened = [], "", 0
    for number, text in enumerate(texts, 1):
        match = _FENCE.fullmatch(text)
        was_code = bool(fence)
        if match and not fence and not (match[1][0] == "`" and "`" in match[2]):
            fence, opened = match[1], number
        elif match and fence and match[1].startswith(fence) and not match[2]:
            fence = ""
        lines.append(DocumentLine(number, text, was_code or bool(fence)))
    if fence:
        faults.add(opened, "The code block that starts here has no end.", f"Close it with a line of {fence}.")
    return lines


def _add(part: _OpenBlock, line: DocumentLine, whole: str, faults: FaultList) -> None:
    part.raw.append(whole)
    if not line.is_code and "<!--" in line.text:
        faults.add(line.number, "An HTML comment hides text from the reader.", "Remove it, or write it as text.")
    if part.section:
        part.section.lines.append(line)
    elif not part.header and whole and line.number == 1:
        faults.add(line.number, f"There is text before `{TITLE}`.", "Start the plan with that header.")
    elif part.header and not part.skipped and not line.is_blank:
        faults.add(line.number, "There is text between the title and the Objective.", "Move it into a section.")
        part.skipped = True


def _header(line: DocumentLine, whole: str, match: re.Match[str], seen: _Seen, faults: FaultList) -> _OpenBlock | None:
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
        "Use bold text inside a section.",
    )
    return _OpenBlock(line.number, whole, skipped=True)


def _title(line: DocumentLine, whole: str, title: str, seen: _Seen, faults: FaultList) -> _OpenBlock:
    if seen.title_line:
        faults.add(line.number, f"This is a second title. The first is on line {seen.title_line}.", "Keep one title.")
        return _OpenBlock(line.number, whole, skipped=True)
    if seen.sections:
        faults.add(line.number, "The title comes after a section.", "Move it to the first line.")
    if not line.text.startswith(TITLE):
        faults.add(
            line.number,
            "The title does not have the exact format.",
            f"Write `{TITLE} {title[:60] or 'a short title'}`.",
        )
    elif not title or not line.text.startswith(f"{TITLE} "):
        faults.add(
            line.number, "The title is empty, or there is no space after the colon.", f"Write `{TITLE} a short title`."
        )
    seen.title, seen.title_line = title, line.number
    return _OpenBlock(line.number, whole)


def _section(line: DocumentLine, whole: str, header: Header, seen: _Seen, faults: FaultList) -> _OpenBlock:
    if line.text != header:
        faults.add(line.number, f"`{line.text.strip()[:60]}` does not have the exact format.", f"Write `{header}`.")
    before = {section.header: section.line for section in seen.sections}
    if header in before:
        faults.add(
            line.number, f"`{header}` appears again. The first is on line {before[header]}.", "Merge the two sections."
        )
        return _OpenBlock(line.number, whole, skipped=True)
    order = list(Header)
    later = [other for other in before if order.index(other) > order.index(header)]
    if later:
        faults.add(
            line.number, f"`{header}` comes after `{later[-1]}`.", f"Move it before `{min(later, key=order.index)}`."
        )
    section = Section(header, line.number)
    seen.sections.append(section)
    return _OpenBlock(line.number, whole, section=section)


def _check_outline(seen: _Seen, last_line: int, faults: FaultList) -> None:
    if not seen.title_line:
        faults.add(1, "The title is missing.", f"Start with `{TITLE} a short title`.")
    lines = {section.header: section.line for section in seen.sections}
    order = list(Header)
    for place, header in enumerate(order):
        if header not in lines and header not in OPTIONAL:
            following = next((other for other in order[place + 1 :] if other in lines), None)
            where = f"Put it before `{following}`." if following else "Put it at the end."
            faults.add(lines[following] if following else last_line, f"`{header}` is missing.", where)


BULLET = re.compile(r"([-*+•])[ \t]+(.*)")
LABEL = re.compile(r"(?:\*\*)?([A-Za-z][A-Za-z ]{0,40}?)(?:\*\*)?[ \t]*:(?:\*\*)?(.*)", re.DOTALL)
_NUMBERED = re.compile(r"(\d{1,6})[.)][ \t]+(.*)")


@dataclass(slots=True)
class ListEntry:
    line: int
    marker: str
    text: str


class Entries:
    """Reads the entries of a section: numbered, with a dash, or with a label each."""

    def __init__(self, faults: FaultList) -> None:
        self._faults = faults

    def filled(self, line: int, what: str, text: str) -> str:
        if is_placeholder(text):
            self._faults.add(line, f"The {what} is still the template's {text[:60]}.", "Replace it with your own text.")
        return text

    def _items(self, section: Section, marker: re.Pattern[str], form: str) -> list[ListEntry]:
        """Return each item with its indented further lines. A line outside of an item is a fault."""
        found: list[tuple[DocumentLine, re.Match[str], list[str]]] = []
        strays = 0
        for line in section.lines:
            match = None if line.is_code else marker.fullmatch(line.text)
            if match:
                found.append((line, match, [match[2]]))
            elif found and (line.is_blank or line.text[0] in " \t" or (line.is_code and strays == 0)):
                found[-1][2].append(_dedented(line.text, 3 if marker is _NUMBERED else 2))
            elif not line.is_blank and not strays:
                strays += 1
                self._faults.add(line.number, "This line is not part of the list.", f"Write `{form}`, or indent it.")
        if not found:
            self._faults.add(section.line, f"`{section.header}` has no entry.", f"Write at least one: `{form}`.")
        return [ListEntry(line.number, match[1], "\n".join(more).rstrip()) for line, match, more in found]

    def numbered(self, section: Section, form: str) -> list[ListEntry]:
        return self._items(section, _NUMBERED, form)

    def bullets(self, section: Section, form: str) -> list[ListEntry]:
        items = self._items(section, BULLET, form)
        for item in items:
            if item.marker != "-":
                self._faults.add(item.line, f"The entry starts with `{item.marker}`.", f"Write `{form}`.")
        return items

    def fields(self, section: Section, labels: tuple[str, ...], *, bold: bool) -> dict[str, tuple[int, str]]:
        """Read `- Label: value` entries: each label once and in order."""
        written = {label: f"**{label}**: " if bold else f"{label}: " for label in labels}
        found: dict[str, tuple[int, str]] = {}
        for item in self.bullets(section, f"- {written[labels[0]]}…"):
            match = LABEL.fullmatch(item.text)
            label = next((known for known in labels if match and known.lower() == match[1].lower()), None)
            if not match or label is None:
                self._faults.add(
                    item.line, "This entry does not belong to the section.", f"Entries: {', '.join(labels)}."
                )
                continue
            if label in found:
                self._faults.add(item.line, f"{label} appears again.", "Write it once.")
                continue
            if not item.text.startswith(written[label].rstrip(" ")):
                self._faults.add(item.line, f"{label} does not have the exact format.", f"Write `- {written[label]}…`.")
            found[label] = (item.line, self.filled(item.line, label, match[2].strip()))
            if not found[label][1]:
                self._faults.add(item.line, f"{label} is empty.", f"Write `- {written[label]}…`.")
        self._check_labels(section, labels, found)
        return found

    def _check_labels(self, section: Section, labels: tuple[str, ...], found: dict[str, tuple[int, str]]) -> None:
        for label in labels:
            if label not in found:
                self._faults.add(section.line, f"{label} is missing.", f"The section needs: {', '.join(labels)}.")
        if list(found) != [label for label in labels if label in found]:
            line = next(iter(found.values()))[0]
            self._faults.add(line, "The entries are out of order.", f"The order is: {', '.join(labels)}.")


def _dedented(text: str, by: int) -> str:
    if text.startswith("\t"):
        return text[1:]
    return text[min(by, len(text) - len(text.lstrip(" "))) :]


def is_placeholder(text: str) -> bool:
    """Return whether the text is a template placeholder that nobody filled in."""
    return _PLACEHOLDER.fullmatch(text) is not None
