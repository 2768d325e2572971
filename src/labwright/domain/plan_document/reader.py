"""Parse a plan document: the values of each section, and every place that does not have the exact format.

Any text can be parsed without an error. Parts that are not understood become faults with their line.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from labwright.domain.cluster import ClusterType
from labwright.domain.plan_document.document import (
    TABLE_COLUMNS,
    ApproachStep,
    ComputeSetup,
    Criterion,
    DocumentBlock,
    Effort,
    Gpuwrap,
    Header,
    Metrics,
    PlanDocument,
    PlanEnvironment,
    PlannedMetric,
    PlanSections,
    Risk,
    SweptParameter,
)
from labwright.domain.plan_document.outline import (
    BULLET,
    LABEL,
    DocumentLine,
    Entries,
    FaultList,
    ListEntry,
    Outline,
    Section,
    is_placeholder,
    outline,
)

LONGEST = 200_000
_STEP = re.compile(r"\*\*(.+?)\*\*[ \t]*(—|–|-|:)?(.*)", re.DOTALL)
_BOX = re.compile(r"\[([ xX]?)\](.*)", re.DOTALL)
_MITIGATION = re.compile(r"(→|->|=>)\s*\*\*Mitigation\*\*\s*:")
_RULE_CELL = re.compile(r":?-+:?")
_PIPE = re.compile(r"(?<!\\)\|")


def read(text: str) -> PlanDocument:
    faults = FaultList()
    if len(text) > LONGEST:
        message = f"The plan has {len(text):,} characters; the limit is {LONGEST:,}."
        faults.add(1, message, "Leave out logs and listings: a plan is a page or two.")
        return PlanDocument(blocks=(DocumentBlock(1, "", text),), sections=PlanSections(), faults=faults.all())
    found = outline(text, faults)
    _check_hidden(text, faults)
    sections = _SectionReader(found, faults).sections()
    return PlanDocument(blocks=tuple(found.blocks), sections=sections, faults=faults.all())


def _check_hidden(text: str, faults: FaultList) -> None:
    starts = [match.end() for match in re.finditer("\n", text)]
    for position, character in hidden_characters(text):
        line = bisect(starts, position) + 1
        faults.add(line, f"There is an invisible character (U+{ord(character[0]):04X}).", "Remove it.")


class _SectionReader:
    def __init__(self, found: Outline, faults: FaultList) -> None:
        self._found = found
        self._faults = faults
        self._entries = Entries(faults)

    def sections(self) -> PlanSections:
        return PlanSections(
            title=self._entries.filled(self._found.title_line, "title", self._found.title),
            objective=self._read(Header.OBJECTIVE, self._objective, ""),
            compute_setup=self._read(Header.COMPUTE_SETUP, self._compute_setup, ComputeSetup()),
            approach=self._read(Header.APPROACH, self._approach, ()),
            parameters=self._read(Header.PARAMETERS, self._parameters, ()),
            metrics=self._read(Header.METRICS, self._metrics, Metrics()),
            success_criteria=self._read(Header.SUCCESS_CRITERIA, self._criteria, ()),
            risks=self._read(Header.RISKS, self._risks, ()),
            estimated_effort=self._read(Header.EFFORT, self._effort, Effort()),
            workflow_improvements=self._read(Header.IMPROVEMENTS, self._improvements, ()),
        )

    def _read(self, header: Header, reader: Callable[[Section], Any], missing: Any) -> Any:
        section = self._found.sections.get(header)
        return reader(section) if section else missing

    def _objective(self, section: Section) -> str:
        text = "\n".join(line.text for line in section.lines).strip()
        count = count_sentences(text)
        if count == 0:
            self._faults.add(
                section.line, "The objective is empty.", "Say in one or two sentences what you want to find out."
            )
        elif count > 2:
            self._faults.add(section.line, f"The objective has {count} sentences.", "Use one or two.")
        for line in section.lines:
            if line.is_code or BULLET.fullmatch(line.text) or line.text.startswith("|"):
                self._faults.add(
                    line.number, "The objective is not plain text.", "Write sentences: no list, table or code."
                )
                break
        return self._entries.filled(section.line + 1, "objective", text)

    def _compute_setup(self, section: Section) -> ComputeSetup:
        given = self._entries.fields(section, ("Cluster type", "GPU count", "gpuwrap", "Environment"), bold=False)
        setup = ComputeSetup(
            cluster_type=self._word(given, "Cluster type", ClusterType),
            gpu_count=self._count(given, "GPU count"),
            gpuwrap=self._word(given, "gpuwrap", Gpuwrap),
            environment=self._word(given, "Environment", PlanEnvironment),
        )
        self._check_setup(setup, given)
        return setup

    def _word(self, given: dict[str, tuple[int, str]], label: str, words: type[StrEnum]) -> Any:
        line, text = given.get(label, (0, ""))
        if text in set(words):
            return words(text)
        if text and not is_placeholder(text):
            self._faults.add(line, f"{label} cannot be {text[:60]!r}.", f"Choose: {', '.join(words)}.")
        return None

    def _count(self, given: dict[str, tuple[int, str]], label: str) -> int | None:
        line, text = given.get(label, (0, ""))
        if text.isascii() and text.isdecimal() and len(text) < 7:
            return int(text)
        if text and not is_placeholder(text):
            self._faults.add(line, f"{label} is not a number: {text[:60]!r}.", "Write a whole number, 0 for none.")
        return None

    def _check_setup(self, setup: ComputeSetup, given: dict[str, tuple[int, str]]) -> None:
        if setup.cluster_type is ClusterType.CPU_ONLY and setup.gpu_count:
            message = f"A cpu_only cluster has no GPUs, but the plan has {setup.gpu_count}."
            self._faults.add(given["GPU count"][0], message, "Write `- GPU count: 0`, or another cluster type.")
        if setup.gpuwrap is Gpuwrap.ENABLED and setup.cluster_type in (ClusterType.SLURM, ClusterType.CPU_ONLY):
            message = f"gpuwrap has no effect on {setup.cluster_type}."
            self._faults.add(given["gpuwrap"][0], message, "Write `- gpuwrap: disabled`.")

    def _approach(self, section: Section) -> tuple[ApproachStep, ...]:
        form = "1. **Step title** — what to do"
        steps = []
        for number, item in enumerate(self._entries.numbered(section, form), 1):
            if item.marker != str(number):
                self._faults.add(item.line, f"Step {number} has the number {item.marker}.", "Number the steps from 1.")
            match = _STEP.fullmatch(item.text)
            if not match or match[2] != "—" or not match[3].strip():
                self._faults.add(item.line, "The step does not have the exact format.", f"Write `{form}`.")
            title, description = (match[1], match[3]) if match else (item.text.split("\n")[0], "")
            title = self._entries.filled(item.line, "step", title.strip())
            steps.append(ApproachStep(title=title, description=description.strip()))
        return tuple(steps)

    def _parameters(self, section: Section) -> tuple[SweptParameter, ...]:
        rows = [line for line in section.lines if not line.is_blank]
        form = f"| {' | '.join(TABLE_COLUMNS)} |"
        if len(rows) < 3 or tuple(_cells(rows[0].text)) != TABLE_COLUMNS:
            hint = f"Write `{form}`, a rule, and one row per parameter. Without a sweep, remove the section."
            place = rows[0].number if rows else section.line
            self._faults.add(place, "The table does not have the exact format.", hint)
        if len(rows) > 1 and not all(map(_RULE_CELL.fullmatch, _cells(rows[1].text) or [""])):
            self._faults.add(rows[1].number, "The rule below the table header is missing.", "Write `|---|---|---|`.")
        found: dict[str, SweptParameter] = {}
        for line in rows[2:]:
            parameter = self._parameter(line, form)
            if parameter and parameter.name in found:
                self._faults.add(line.number, f"{parameter.name} appears again.", "Write one row per parameter.")
            elif parameter:
                found[parameter.name] = parameter
        return tuple(found.values())

    def _parameter(self, line: DocumentLine, form: str) -> SweptParameter | None:
        cells = _cells(line.text)
        if len(cells) != len(TABLE_COLUMNS):
            message = f"The row has {len(cells)} cells instead of {len(TABLE_COLUMNS)}."
            self._faults.add(line.number, message, f"Write it like `{form}`. Write a pipe inside a cell as `\\|`.")
            return None
        name, values, rationale = cells
        for what, cell in zip(TABLE_COLUMNS, cells, strict=True):
            if not cell:
                self._faults.add(line.number, f"The row has no {what}.", "Fill it in.")
            self._entries.filled(line.number, what, cell)
        return SweptParameter(name=without_code(name), values=self._values(line, values), rationale=rationale)

    def _values(self, line: DocumentLine, cell: str) -> tuple[str, ...]:
        if not cell:
            return ()
        if is_interval(cell):
            hint = f"For only these two values, write `{without_brackets(without_code(cell))}`."
            self._faults.add(line.number, f"{cell} could be a range or two values.", hint)
        values = split_values(without_brackets(without_code(cell)))
        for value in values:
            if why := why_not_concrete(value):
                message = f"The value {value[:60]!r} {why}."
                self._faults.add(
                    line.number, message, "List every value to try, separated by commas: `1e-4, 1e-3, 1e-2`."
                )
        if len(set(values)) < len(values):
            self._faults.add(line.number, "A value appears twice in the row.", "Write each value once.")
        return tuple(values)

    def _metrics(self, section: Section) -> Metrics:
        primary: PlannedMetric | None = None
        secondary: list[PlannedMetric] = []
        for item in self._entries.bullets(section, "- **Primary**: metric — why"):
            kind, metric = self._metric(item)
            if kind == "primary" and primary is None:
                primary = metric
                if secondary:
                    self._faults.add(item.line, "The primary metric comes after another metric.", "Put it first.")
            elif kind == "primary":
                self._faults.add(item.line, "This is a second primary metric.", "Make it **Secondary**.")
            elif kind:
                secondary.append(metric)
        if primary is None:
            self._faults.add(section.line, "There is no primary metric.", "Write `- **Primary**: metric — why`.")
        return Metrics(primary=primary, secondary=tuple(secondary))

    def _metric(self, item: ListEntry) -> tuple[str, PlannedMetric]:
        match = LABEL.fullmatch(item.text)
        kind = match[1].lower() if match else ""
        name, dash, why = (match[2] if match else item.text).partition("—")
        if kind not in ("primary", "secondary"):
            self._faults.add(
                item.line, "The metric is neither primary nor secondary.", "Write `- **Primary**: metric — why`."
            )
            kind = ""
        elif not item.text.startswith(f"**{kind.capitalize()}**:") or not dash or not name.strip() or not why.strip():
            form = f"- **{kind.capitalize()}**: metric — why"
            self._faults.add(item.line, "The metric does not have the exact format.", f"Write `{form}`.")
        name = self._entries.filled(item.line, "metric", name.strip())
        return kind, PlannedMetric(name=without_code(name), why=why.strip())

    def _criteria(self, section: Section) -> tuple[Criterion, ...]:
        form = "- [ ] criterion"
        criteria = []
        for item in self._entries.bullets(section, form):
            match = _BOX.fullmatch(item.text)
            text = (match[2] if match else item.text).strip()
            if not match or not match[1] or not text or not match[2].startswith(" "):
                self._faults.add(item.line, "The criterion has no box or no text.", f"Write `{form}`.")
            met = bool(match and match[1] in "xX" and match[1])
            criteria.append(Criterion(text=self._entries.filled(item.line, "criterion", text), met=met))
        return tuple(criteria)

    def _risks(self, section: Section) -> tuple[Risk, ...]:
        form = "- **Risk**: what may go wrong → **Mitigation**: what to do then"
        risks = []
        for item in self._entries.bullets(section, form):
            arrow = _MITIGATION.search(item.text)
            risk, mitigation = (item.text[: arrow.start()], item.text[arrow.end() :]) if arrow else (item.text, "")
            risk, mitigation = risk.removeprefix("**Risk**:").strip(), mitigation.strip()
            begins = item.text.startswith("**Risk**:")
            if not begins or not arrow or arrow[1] != "→" or not risk or not mitigation:
                self._faults.add(item.line, "The risk does not have the exact format.", f"Write `{form}`.")
            risks.append(Risk(risk=self._entries.filled(item.line, "risk", risk), mitigation=mitigation))
        return tuple(risks)

    def _effort(self, section: Section) -> Effort:
        given = self._entries.fields(section, ("Runs", "Time", "Resources"), bold=True)
        line, runs = given.get("Runs", (0, ""))
        if runs and not any(character in "0123456789" for character in runs) and not is_placeholder(runs):
            self._faults.add(
                line, "Runs does not contain a number.", "Write how many: `- **Runs**: 12 (4 values × 3 seeds)`."
            )
        return Effort(**{label.lower(): text for label, (_, text) in given.items()})

    def _improvements(self, section: Section) -> tuple[str, ...]:
        items = self._entries.bullets(section, "- a script, template or pattern to reuse")
        return tuple(self._entries.filled(item.line, "improvement", item.text) for item in items)


def _cells(row: str) -> list[str]:
    """Split a row into cells. A pipe in a cell is written `\\|`, in code too."""
    inner = row.strip()
    if not inner.startswith("|"):
        return []
    cells = _PIPE.split(inner[1:])
    if cells and not cells[-1].strip():
        cells = cells[:-1]
    return [cell.strip().replace("\\|", "|") for cell in cells]


# Invisible characters and those that change the order of text: the approver must see the real text.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]|\r(?!\n|$)"
)
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[%kKMG]?"
_RANGE = re.compile(rf"{_NUMBER}\s*(?:-|–|—|~|to|through|until|\.\.+|…)\s*{_NUMBER}(?:\s*\(.*\))?", re.DOTALL)
_PAIR = re.compile(rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]")
_RANGE_WORDS = (
    "between ", "from ", "up to ", "at least ", "at most ", "range", "linspace", "logspace", "np.", "uniform",
    "loguniform", "log-uniform", "log uniform", "<", ">", "≤", "≥",
)  # fmt: skip
_VAGUE = frozenset(
    {"tbd", "todo", "various", "several", "multiple", "etc", "etc.", "...", "…", "?", "and so on", "n/a", "-"}
)
_ABBREVIATIONS = frozenset({"e.g.", "i.e.", "vs.", "cf.", "approx.", "resp.", "fig.", "eq.", "no.", "dr.", "incl."})
_CLOSING = "\"')]}*_`”’»"
_OPENING, _ENDING = "([{", ")]}"


def hidden_characters(text: str) -> Iterator[tuple[int, str]]:
    """Yield the position and text of each invisible character."""
    return ((match.start(), match.group()) for match in _HIDDEN.finditer(text))


def count_sentences(text: str) -> int:
    words = text.split()
    ends = 0
    for word, following in zip(words, [*words[1:], ""], strict=False):
        ends += sum(word.count(mark) for mark in "。！？")
        ends += not word.endswith(tuple("。！？")) and _ends_sentence(word, following)
    return ends


def _ends_sentence(word: str, following: str) -> bool:
    """Return whether a sentence ends here. The last word always ends one, with or without a full stop."""
    if not following:
        return True
    bare = word.rstrip(_CLOSING)
    if not bare.endswith((".", "!", "?")) or bare.lstrip("(\"'").lower() in _ABBREVIATIONS:
        return False
    return not following.lstrip("(\"'*_`").startswith(tuple("abcdefghijklmnopqrstuvwxyz"))


def split_values(cell: str) -> list[str]:
    """Split a cell at its commas, except those in brackets, quotes or code."""
    values, start, depth, quote = [], 0, 0, ""
    for position, character in enumerate(cell):
        if quote:
            quote = "" if character == quote else quote
        elif character in '`"':
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _ENDING:
            depth = max(0, depth - 1)
        elif character == "," and depth == 0:
            values.append(cell[start:position])
            start = position + 1
    return [without_code(value.strip()) for value in (*values, cell[start:])]


def without_brackets(cell: str) -> str:
    """Remove the brackets of a list such as `[1, 2, 3]`."""
    inside = cell[1:-1]
    bracketed = cell.startswith(("[", "{")) and cell.endswith(("]", "}")) and not set(inside) & set("[]{}")
    return inside if bracketed else cell


def without_code(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1] else text


def why_not_concrete(value: str) -> str:
    """Return why this is not one concrete value, or an empty text."""
    low = value.strip().lower()
    if not low:
        return "is empty"
    if is_placeholder(value) or low in _VAGUE or low.endswith(("...", "…", " etc", " etc.")):
        return "is not a concrete value"
    if _RANGE.fullmatch(value.strip()) or low.startswith(_RANGE_WORDS):
        return "is a range"
    return ""


def is_interval(cell: str) -> bool:
    """Return whether the cell is like `[1e-4, 1e-1]`, which could be two values or a range."""
    return _PAIR.fullmatch(without_code(cell)) is not None
