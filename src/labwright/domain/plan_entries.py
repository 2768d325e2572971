"""The entries of a section of a plan document: numbered, with a dash, or with a label each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labwright.domain.plan_blocks import Faults, Line, Section
from labwright.domain.plan_words import is_placeholder

BULLET = re.compile(r"([-*+•])[ \t]+(.*)")
LABEL = re.compile(r"(?:\*\*)?([A-Za-z][A-Za-z ]{0,40}?)(?:\*\*)?[ \t]*:(?:\*\*)?(.*)", re.DOTALL)
_NUMBERED = re.compile(r"(\d{1,6})[.)][ \t]+(.*)")


@dataclass(slots=True)
class Entry:
    line: int
    marker: str
    text: str


class Entries:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def filled(self, line: int, what: str, text: str) -> str:
        if is_placeholder(text):
            self._faults.add(line, f"The {what} is still the template's {text[:60]}.", "Write what is meant.")
        return text

    def _items(self, section: Section, marker: re.Pattern[str], form: str) -> list[Entry]:
        """Each with its further lines, which are indented; what belongs to no item is a fault."""
        found: list[tuple[Line, re.Match[str], list[str]]] = []
        strays = 0
        for line in section.lines:
            match = None if line.is_code else marker.fullmatch(line.text)
            if match:
                found.append((line, match, [match[2]]))
            elif found and (line.is_blank or line.text[0] in " \t" or (line.is_code and strays == 0)):
                found[-1][2].append(_dedented(line.text, 3 if marker is _NUMBERED else 2))
            elif not line.is_blank and not strays:
                strays += 1
                self._faults.add(line.number, "This line is not a part of the list.", f"Write `{form}`, or indent it.")
        if not found:
            self._faults.add(section.line, f"`{section.header}` has no entry.", f"Write at least one: `{form}`.")
        return [Entry(line.number, match[1], "\n".join(more).rstrip()) for line, match, more in found]

    def numbered(self, section: Section, form: str) -> list[Entry]:
        return self._items(section, _NUMBERED, form)

    def bullets(self, section: Section, form: str) -> list[Entry]:
        items = self._items(section, BULLET, form)
        for item in items:
            if item.marker != "-":
                self._faults.add(item.line, f"The entry begins with `{item.marker}`.", f"Write `{form}`.")
        return items

    def fields(self, section: Section, labels: tuple[str, ...], *, bold: bool) -> dict[str, tuple[int, str]]:
        """`- Label: value`, each label once and in order."""
        written = {label: f"**{label}**: " if bold else f"{label}: " for label in labels}
        found: dict[str, tuple[int, str]] = {}
        for item in self.bullets(section, f"- {written[labels[0]]}…"):
            match = LABEL.fullmatch(item.text)
            label = next((known for known in labels if match and known.lower() == match[1].lower()), None)
            if not match or label is None:
                self._faults.add(item.line, "This entry is none of the section's.", f"There are: {', '.join(labels)}.")
                continue
            if label in found:
                self._faults.add(item.line, f"{label} stands here again.", "Say it once.")
                continue
            if not item.text.startswith(written[label].rstrip(" ")):
                self._faults.add(item.line, f"{label} has not the exact form.", f"Write `- {written[label]}…`.")
            found[label] = (item.line, self.filled(item.line, label, match[2].strip()))
            if not found[label][1]:
                self._faults.add(item.line, f"{label} says nothing.", f"Write `- {written[label]}…`.")
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
