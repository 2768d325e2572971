"""Success criteria against the numbers, by rules. What no rule understands stays open, and says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from labwright.domain.metrics.direction import MAXIMIZE, direction_of
from labwright.domain.plan_document.document import Criterion
from labwright.domain.search.results import ConfigurationResult, differ
from labwright.planning.results.comparison import Comparison
from labwright.planning.results.findings import Findings
from labwright.planning.results.words import amount, params_text, spread

_EVERY_RUN = re.compile(r"\b(every|each|all)\b.*\bruns?\b.*\b(ends?|finish\w*|complete\w*|reports?|succeeds?)\b", re.I)
_COMPARED = re.compile(r"\bcompared\b.*\bbaseline\b", re.I)
_NOT_WORSE = re.compile(r"^(?P<name>\S+) (is|are|does|stays?) not (get )?worse than the baseline", re.I)
_BEATS = re.compile(r"\b(beats?|better than|exceeds?|improves? (on|over|upon)|outperforms?)\b.*\bbaseline\b", re.I)
_NUMBER = r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?P<percent> ?%)?"
_LIMIT = re.compile(
    rf"(?P<name>[\w./-]+)`?\s+(?:is |of |reaches |must be |should be )?"
    rf"(?P<sign>>=|≥|>|<=|≤|<|at least|at most|above|below|under|over|or more|reaches)\s*{_NUMBER}",
    re.I,
)
_LOWER_BOUNDS = {">=", "≥", ">", "at least", "above", "over", "or more", "reaches"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    text: str
    met: bool | None  # None: it takes a person
    evidence: str


def judge(criteria: tuple[Criterion, ...], findings: Findings | None, comparison: Comparison) -> list[Judged]:
    return [_judge(criterion.text, findings, comparison) for criterion in criteria]


def _judge(text: str, findings: Findings | None, comparison: Comparison) -> Judged:
    if findings is None:
        return Judged(text=text, met=False, evidence="no run was made")
    rules: list[Callable[[str, Findings, Comparison], tuple[bool | None, str] | None]] = [
        _every_run, _compared, _not_worse, _beats, _limit,
    ]  # fmt: skip
    for rule in rules:
        found = rule(text, findings, comparison)
        if found is not None:
            return Judged(text=text, met=found[0], evidence=found[1])
    return Judged(text=text, met=None, evidence="no rule understands this one: it takes a person to look")


def _every_run(text: str, findings: Findings, _comparison: Comparison) -> tuple[bool, str] | None:
    if not _EVERY_RUN.search(text):
        return None
    done, total = len(findings.values), len(findings.runs)
    words = f"{done} of {total} runs of {_some(findings.sweep_ids)} finished with {findings.metric.name}"
    missing = [failed.run.id for failed in findings.failed]
    return done == total, words + (f"; not: {_some(missing)}" if missing else "")


def _compared(text: str, findings: Findings, comparison: Comparison) -> tuple[bool, str] | None:
    if not _COMPARED.search(text):
        return None
    if not comparison.is_made:
        return False, comparison.text
    return True, _best_and_baseline(findings, findings.metric.name)


def _beats(text: str, _findings: Findings, comparison: Comparison) -> tuple[bool | None, str] | None:
    if not _BEATS.search(text):
        return None
    met = {"beyond_noise": True, "unknown": None, "no_noise": None}.get(comparison.kind, False)
    return met, comparison.text


def _not_worse(text: str, findings: Findings, _comparison: Comparison) -> tuple[bool | None, str] | None:
    """Of a further metric, for the configuration that is best by the deciding one."""
    match = _NOT_WORSE.search(text)
    if match is None:
        return None
    name = match["name"].strip("`*")
    best, baseline = findings.best, findings.baseline
    if best is None or baseline is None:
        return False, "the best or the baseline has no finished run"
    here, there = findings.of_metric(name, best), findings.of_metric(name, baseline)
    direction = direction_of(name)
    if here.mean is None or there.mean is None or direction is None:
        return None, f"{name} was not reported by both, or it is not known which way is better"
    worse = here.mean < there.mean if direction == MAXIMIZE else here.mean > there.mean
    beyond = here.n > 1 and there.n > 1 and differ(here, there)
    words = _best_and_baseline(findings, name)
    return (not (worse and beyond), words + ("; within the noise" if worse and not beyond else ""))


def _limit(text: str, findings: Findings, _comparison: Comparison) -> tuple[bool, str] | None:
    match = _LIMIT.search(text)
    if match is None or findings.best is None:
        return None
    name = match["name"].strip("`*")
    found = findings.of_metric(name, findings.best) if name != findings.metric.name else findings.best
    if found.mean is None:
        return None
    limit = float(match["number"]) / (100 if match["percent"] and abs(found.mean) <= 1 else 1)
    sign = match["sign"].lower()
    strict = sign in (">", "<", "above", "below", "under", "over")
    over = found.mean > limit if strict else found.mean >= limit
    under = found.mean < limit if strict else found.mean <= limit
    met = over if sign in _LOWER_BOUNDS else under
    return met, f"{name} of the best is {spread(found)}, the limit {amount(limit)}; {_some(found.run_ids)}"


def _best_and_baseline(findings: Findings, name: str) -> str:
    parts = []
    for who, configuration in (("best", findings.best), ("baseline", findings.baseline)):
        assert configuration is not None
        found = configuration if name == findings.metric.name else findings.of_metric(name, configuration)
        parts.append(f"{who} ({params_text(configuration.params)}) {name} {spread(found)}, {_some(_valued(found))}")
    return "; ".join(parts)


def _valued(found: ConfigurationResult) -> list[str]:
    """Those that the mean is made of stand first."""
    return found.run_ids[: max(1, found.n)]


def _some(run_ids: list[str]) -> str:
    more = f" and {len(run_ids) - 5} more" if len(run_ids) > 5 else ""
    return ", ".join(run_ids[:5]) + more
