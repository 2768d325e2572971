"""Read one printed line: which number belongs to which name, and which one is the step."""

from __future__ import annotations

import re
from typing import NamedTuple

from labwright.sidecar.printed.vocabulary import (
    BATCH_RANK,
    COMPANION,
    DENIED,
    EPOCH_RANK,
    METRIC,
    POSITION_RANK,
    QUALIFIER,
    SPLITS,
    STEP,
    UNKNOWN,
    Name,
    name_of,
)

NUMBER = re.compile(
    r"(?<![\w.@])[-+]?(?:\d+(?:,\d{3})*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|(?:[nN]a[nN]|[iI]nf(?:inity)?)(?!\w))"
)
_PREFIXES = re.compile(
    r"""\s*(?:
    \[?(?:[A-Z]\s)?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d(?:[-/]\d{4})?)[T\s_]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?
        (?:Z|[+-]\d\d:?\d\d)?(?:\s[\w.]+)?\]?:?     # date and time, then a logger: [03/05 01:30:01 d2.events]:
    |\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?=\s)         # time alone
    |[IWEF]\d{4}\s\d\d:\d\d:\d\d\.\d+\s+\d+\s[\w./]+:\d+\]   # glog and absl
    |\[?(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|SUCCESS|TRACE|NOTICE)\b\s*\]?:?
    |\[[\w.]+\.\w+:\d+:[\w<>]+\]                    # [logging.py:123:log_dist]
    |\([\w.]+:\d+\)                                 # (trainer:273)
    |[\w.]+:(?:<\w+>|\w+):\d+(?=\s)                 # __main__:<module>:6
    |\w+:\d+(?=\s-\s)                               # trainer:10 -
    |__\w+__(?=\s-) | (?:mmengine|root|absl)(?=\s-)
    |\w+:(?=\s+[\w/]+\s+[-\d.]+$)                   # wandb:   train/loss 0.25
    |[-|:](?=\s)
    )""",
    re.VERBOSE,
)
RANK = re.compile(r"\s*(?:\[(?:rank|Rank|RANK|default)[\s_:]*(-?\d+)\]:?|\[\d+,(\d+)\]<\w+>:|\[[\w.-]+:(\d+)/\d+\])")
_WORKER = re.compile(r"\s*\[((?:worker|actor|client|replica|agent|seed|run)[-_ ]?(\d+))\]:?", re.IGNORECASE)
_TQDM = re.compile(r"\d+%\|[^|]*\|\s*(\d+)/(\d+|\?)\s*\[[^\],]*(?:,\s*[^,\]=]*(?=[,\]]))?")
_BAR_ART = re.compile(r"[━─█▏▎▍▌▋▊▉]{3}|\[[=>.#\s-]{8,}\]|[=>]{6,}")
_OBJECT = re.compile(r"(?<![\w.])(?!tensor|array)[A-Za-z_][\w.]*\((?=[^()]*\w=)[^()]*\)?|\b(?:Namespace|\w*Config)\(.*")
_SETTINGS = re.compile(r"(?:param|config|arg|setting|hyper|kwargs)\w*['\"]?\W{0,4}\{[^}]*\}?", re.IGNORECASE)
_SETTINGS_LINE = re.compile(
    r"\W*(?:config|overrid|namespace|hyper|argument|settings?\b|options?\b|args\b|loading|loaded"
    r"|sav(?:ed|ing)\b|.*\b[Ss]aved (?:checkpoint|model))",
    re.IGNORECASE,
)
_CONDITIONS = re.compile(r"@?\[[^\]]*=[^\]]*\](?=\s*[=:])")  # as in `AP @[ IoU=0.50 | area=all ] = 0.379`
_ADDRESS = re.compile(r"\S*://\S*|\S*\.(?:py|cpp|pt|pth|json|yaml|ckpt|safetensors)\S*")
_TIME = re.compile(r"(?<![\w.])\d+:\d\d(?::\d\d)?(?![\w])")
_WRAPPER = re.compile(r"(?:[\w.]*(?:tensor|Tensor|float\d*|int\d*|array|Array)\(\[*|\[+|['\"]|#)$")
_MORE_OF_ARRAY = re.compile(r"(?:\s|,\s*)[-+.\d]")
_SEPARATOR = re.compile(r"\s*(?:=>|[-–]>|[=:→])\s*$")
_HARD = re.compile(r"[^\w\s./@'’\"#&+-]|\s[-–—]+\s|\s{2,}|\.\s|\t|^[-/.\s]+")
_NOTE = re.compile(r"([A-Za-z][\w@/. -]*?)\s*\(([A-Za-z][\w -]*)\)$")
_UNIT = re.compile(
    r"\s?(?:[munµ]?s|secs?|seconds?|mins?|minutes?|h|hours?|days?|[KMGT]i?B?|bytes|billion|million|(?:\w+/)s(?:ec)?)(?!\w)"
    r"|(?!f0\b|epoch|['\"])[A-Za-z_]|:\d|-\d|\.\d|\s?[\w]+/s(?:ec)?\b"
)
_VALUE_FIRST = re.compile(r"\s+([A-Za-z][\w ]*?)\s*(?:[,;|]|$)")
SPLIT_WORD = re.compile(
    r"(?<![\w/])(?:" + "|".join(sorted(SPLITS, key=len, reverse=True)) + r")(?![\w/])", re.IGNORECASE
)
_BEST = re.compile(r"(?:^|\.\s)\W*(?:new |current |the )?best\b", re.IGNORECASE)
_PHRASE = re.compile(
    r"\W*((?:[\w@-]+ )?[\w@-]+) (?:of|on|for) [^:=]*?(?::| is| =)\s*(?=[-\d.]+\s*%?\s*$)", re.IGNORECASE
)
_COUNT_IN_JSON = re.compile(r'\s+"[\w. -]+": -?\d+,?\s*$')  # an indented line of JSON: more likely a setting
_WORDS = re.compile(r"[A-Za-z]{2,}")
_PROSE = 8  # a line with more words is a sentence
_COMMA = re.compile(r"[=:\s]\s*-?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?=[;\s%]|$)")
_DOT = re.compile(r"\d\.\d")
_TEXT_VALUE = re.compile(r"['\"]?: ?(?:None|True|False|true|false|null|['\"][A-Za-z/])|=(?:None|True|False|'[A-Za-z])")


class Pair(NamedTuple):
    key: str
    kind: str
    at: int  # index of the number in the line
    total: int = -1  # index of the number below the fraction stroke, or -1
    strong: bool = True  # a colon or an equals sign is between name and number


class Reading(NamedTuple):
    """What lines of one shape say. Numbers are given by their index in the line."""

    size: int  # how many numbers the line has
    pairs: tuple[Pair, ...] = ()
    step: int = -1
    step_total: int = -1
    rank: int = 0  # of the step word
    epoch: int = -1  # index of the epoch beside a step
    inside: bool = False  # one of many lines of its epoch
    split: str = ""
    has_process: bool = False  # a tag names the rank that printed the line
    worker: tuple[str, int] = ("", -1)
    bar: tuple[int, int] = (-1, -1)  # done and total
    comma: bool = False
    star: bool = False
    fraction: bool = False  # the epoch is printed as a fraction, such as 0.5
    text: str = ""  # without prefix and bars


def has_decimal_comma(text: str) -> bool:
    return "," in text and _COMMA.search(text) is not None and _DOT.search(text) is None


def number_of(text: str) -> float:
    return float(text.replace(",", "") if "," in text else text)


class LineParser:
    """Parse a line once. The object lives for one line."""

    def __init__(self, line: str) -> None:
        self.comma = has_decimal_comma(line)
        self.line = line.replace(",", ".") if self.comma else line
        self.numbers = list(NUMBER.finditer(self.line))
        self._at: dict[int, int] = {match.start(): index for index, match in enumerate(self.numbers)}
        self.process: int | None = None
        self.worker, self.bar = ("", -1), (-1, -1)
        self.text = self._masked()
        self.pairs: list[Pair] = []
        self.steps: list[tuple[int, int, int]] = []  # rank, index, index of the total
        self.positions: list[tuple[int, int, bool]] = []  # unnamed `i/n`: index, total, whether it may be a step
        self.split, self.fraction = "", False

    def _index(self, start: int) -> int:
        return self._at.get(start, -1)

    def _masked(self) -> str:
        text = self.line
        start = 0
        for _ in range(8):
            rank = RANK.match(text, start)
            if rank:
                self.process = next(int(number) for number in rank.groups() if number is not None)
            worker = None if rank else _WORKER.match(text, start)
            if worker:
                self.worker = (worker[1][: worker.start(2) - worker.start(1)], self._index_in(worker.start(2)))
            match = rank or worker or _PREFIXES.match(text, start)
            if not match:
                break
            start = match.end()
            bar = _TQDM.match(text, start)
            if bar:
                break
        text = "\x00" * start + text[start:]
        bar = _TQDM.search(text)
        if bar:
            self.bar = (self._index(bar.start(1)), self._index(bar.start(2)))
            text = self._blank(text, bar)
            again = _PREFIXES.match(text, bar.end() + 1)
            if again and text[bar.end() : bar.end() + 1] == "]":
                inner = LineParser(text[bar.end() + 1 :])
                text = text[: bar.end() + 1] + inner.text
        if _SETTINGS_LINE.match(text.lstrip("\x00 ")):
            return ""
        for pattern in (_SETTINGS, _OBJECT, _CONDITIONS, _ADDRESS, _TIME):
            text = pattern.sub(lambda match: "\x00" * len(match[0]), text)
        return text

    def _index_in(self, position: int) -> int:
        return next((i for i, match in enumerate(self.numbers) if match.start() <= position < match.end()), -1)

    @staticmethod
    def _blank(text: str, match: re.Match[str]) -> str:
        return text[: match.start()] + "\x00" * len(match[0]) + text[match.end() :]

    def reading(self) -> Reading:
        if self.text and not self._is_settings():
            self._scan()
            is_weak = not self.steps and not any(pair.strong for pair in self.pairs)
            if is_weak and len(_WORDS.findall(self.text)) > _PROSE:
                self.pairs = []  # a sentence that mentions a number
            if _COUNT_IN_JSON.match(self.text):
                self.pairs = []
        pairs = self._unique()
        step, total, rank, epoch, inside = self._step()
        bar, text = self.bar, self.text.strip("\x00 ")
        if bar == (-1, -1) and self.positions and _BAR_ART.search(self.line):
            bar = self.positions[-1][:2]
        return Reading(
            len(self.numbers), pairs, step, total, rank, epoch, inside, self.split, self.process is not None,
            self.worker, bar, self.comma, text.startswith("*"), self.fraction, text,
        )  # fmt: skip

    def _is_settings(self) -> bool:
        return len(_TEXT_VALUE.findall(self.text)) >= 2

    def _scan(self) -> None:
        text, end, skip = self.text, 0, -1
        best = _BEST.search(text)
        phrase = _PHRASE.match(text.strip("\x00"))
        for index, match in enumerate(self.numbers):
            start = match.start()
            if text[start] == "\x00" or index == skip:
                end = max(end, match.end())
                continue
            gap, end = text[end:start], match.end()
            total = self._total(index)
            if total >= 0:
                skip, end = total, self.numbers[total].end()
            last = index == len(self.numbers) - 1
            if phrase and last:
                self._add(name_of(phrase[1]), index, total, True, SPLIT_WORD.findall(text), bool(best))
                continue
            self._number(index, total, gap, text[end : end + 24], best is not None and best.start() < start)

    def _total(self, index: int) -> int:
        if index + 1 >= len(self.numbers):
            return -1
        between = self.text[self.numbers[index].end() : self.numbers[index + 1].start()]
        return index + 1 if between.strip(" ") == "/" else -1

    def _number(self, index: int, total: int, gap: str, after: str, best: bool) -> None:
        token = self.numbers[index][0]
        if after.startswith("epoch"):
            self.steps.append((EPOCH_RANK, index, total))
            self.split = (SPLIT_WORD.findall(gap) or [self.split])[-1]
            return
        if _UNIT.match(after):
            if after.lstrip().startswith("batch"):
                self.steps.append((BATCH_RANK, index, total))
            elif total >= 0 and not gap.strip("\x00 ["):
                self.positions.append((index, total, False))
            return
        if gap.endswith("[") and _MORE_OF_ARRAY.match(after):
            return  # a name before several numbers does not say which one counts
        bare = _WRAPPER.sub("", gap)
        stripped = _SEPARATOR.sub("", bare)
        strong = stripped != bare
        if not strong and bare == gap and not gap[-1:].isspace():
            self._unnamed(index, total, gap, after)
            return
        stripped = stripped.rstrip().rstrip("'\"")
        if not strong and stripped.endswith(" is"):
            stripped = stripped[:-3]
        note = _NOTE.search(stripped)
        cut = max((part.end() for part in _HARD.finditer(stripped)), default=0)
        text, head = stripped[cut:], stripped[:cut]
        if note:
            inner = max((part.end() for part in _HARD.finditer(note[1])), default=0)
            text, head = f"{note[1][inner:]} {note[2]}", stripped[: note.start()] + note[1][:inner]
        text = text.strip(" '\"-/.#&+")
        if not text:
            self._unnamed(index, total, gap, after)
            return
        name = name_of(text, prose=not strong)
        if name.kind == QUALIFIER and gap.endswith("[") and SPLIT_WORD.fullmatch(text):
            self._unnamed(index, total, gap, after)
            return
        if strong and SPLIT_WORD.fullmatch(text) and token.isdigit():  # `Train: 0 [50/390]`
            self.split = text
            return
        if name.kind == STEP and token.lstrip("+").isdigit():
            self.split = (SPLIT_WORD.findall(stripped) or [self.split])[-1]
            self.steps.append((name.rank, index, total))
            return
        self.fraction |= name.kind == STEP and name.rank == EPOCH_RANK
        if name.kind != METRIC and not strong and self._value_first(index):
            return
        splits = SPLIT_WORD.findall(head if strong or name.split else f"{head} {text}")
        if not strong and name.kind == UNKNOWN and (" " in text or not text[:1].isalpha()):
            name = name._replace(kind=DENIED)
        if not strong and name.kind == QUALIFIER:
            name = name._replace(kind=DENIED)
        self._add(name, index, total, strong, splits, best)
        first_word = text.split(" ")[0]
        if name.kind == METRIC and first_word != text and SPLIT_WORD.fullmatch(first_word):
            self.split = first_word  # `train Loss: 0.6 Acc: 0.7` has both numbers of the training

    def _add(self, name: Name, index: int, total: int, strong: bool, splits: list[str], best: bool) -> None:
        if splits:
            self.split = splits[-1]
        if name.kind in (DENIED, STEP) or not name.key:
            return
        if total >= 0 and name.kind != METRIC:
            return
        key = name.key
        if self.split and not name.split and name.kind != COMPANION:
            key = f"{self.split.lower()}_{key}"
        if best and "best" not in key.lower():
            key = f"best_{key}"
        self.pairs.append(Pair(key, name.kind, index, total, strong))

    def _unnamed(self, index: int, total: int, gap: str, after: str) -> None:
        found = SPLIT_WORD.findall(gap)
        if found:
            self.split = found[-1]
        whole = self.numbers[index][0].isdigit()
        at_start = not gap.strip("\x00 [(") and not self.text[: self.numbers[index].start()].strip("\x00 [(")
        if total >= 0:
            self.positions.append((index, total, gap.endswith("[") or at_start))
        elif whole and gap.endswith("[") and after[:1] == "]":
            if at_start:
                self.steps.append((7, index, -1))
        elif whole and at_start and re.match(r":\s", after):
            self.steps.append((7, index, -1))
        else:
            self._value_first(index)

    def _value_first(self, index: int) -> bool:
        match = _VALUE_FIRST.match(self.text[self.numbers[index].end() :])
        if not match or len(match[1]) > 30:
            return False
        name = name_of(match[1])
        if name.kind == METRIC:
            self._add(name, index, -1, True, [], False)
        return name.kind == METRIC

    def _unique(self) -> tuple[Pair, ...]:
        """Drop a key that has different numbers in one line: nobody knows which one counts."""
        seen: dict[str, str] = {}
        twice = set()
        for pair in self.pairs:
            token = self.numbers[pair.at][0]
            if seen.setdefault(pair.key.lower(), token) != token:
                twice.add(pair.key.lower())
        kept: dict[str, Pair] = {}
        for pair in self.pairs:
            if pair.key.lower() not in twice:
                kept.setdefault(pair.key, pair)
        return tuple(kept.values())

    def _step(self) -> tuple[int, int, int, int, bool]:
        """Return the indexes of step and total, the step's rank, the epoch's index, and whether it is inside."""
        named = [step for step in self.steps if step[0] > BATCH_RANK]
        batches = [step for step in self.steps if step[0] == BATCH_RANK]
        free = [position for position in self.positions if position[2]]
        if not named:
            if batches:
                return (*batches[0][1:], BATCH_RANK, -1, False)
            return (*free[0][:2], POSITION_RANK, -1, False) if free else (-1, -1, 0, -1, False)
        rank, index, total = max(named, key=lambda step: step[0])
        epoch = next((step[1] for step in named if step[0] == EPOCH_RANK), -1)
        unnamed_inside = bool(self.positions) and self.bar == (-1, -1) and not _BAR_ART.search(self.line)
        inside = rank == EPOCH_RANK and (bool(batches) or unnamed_inside)
        return index, total, rank, epoch if rank != EPOCH_RANK else -1, inside


def read_line(line: str) -> Reading:
    return LineParser(line).reading()
