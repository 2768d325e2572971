"""How likely a script trains or evaluates, with the reasons."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from labwright.planning.scan.facts import Kind, Metric
from labwright.planning.scan.flags import CommandLine
from labwright.planning.scan.literals import dotted, last_name
from labwright.planning.scan.reach import Reach

TRAINS = re.compile(
    r"(^|[_-])(train|trainer|training|finetune|fine_tune|pretrain|fit|learn)(ing)?([_-]|\d*$)", re.IGNORECASE
)
_EVALUATES = re.compile(
    r"(^|[_-])(eval|evaluate|evaluation|test|validate|benchmark|score|infer|inference|predict)([_-]|$)", re.IGNORECASE
)
_STARTS = re.compile(r"^(main|run|__main__|experiment|cli|run_.*|.*_run)$", re.IGNORECASE)
_ASIDE = re.compile(
    r"(^|/)(tests?|docs?|old|legacy|archive|deprecated|third_party|vendor|external|notebooks|tools|examples?)/"
)


@dataclass(slots=True)
class Ranking:
    kind: Kind = Kind.OTHER
    score: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, points: int, reason: str) -> None:
        self.score += points
        self.reasons.append(reason)


def _stem(path: str) -> str:
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    return path.rsplit("/", 2)[-2] if stem == "__main__" and "/" in path else stem


def first_look(path: str) -> int:
    """What the name alone is worth."""
    stem = _stem(path)
    points = 0
    if TRAINS.search(stem):
        points = 40
    elif _EVALUATES.search(stem):
        points = 30
    elif _STARTS.match(stem):
        points = 15
    return points - (20 if _ASIDE.search(path) else 0) - 2 * path.count("/") if points else 0


def rank(reach: Reach, line: CommandLine, metrics: list[Metric]) -> Ranking:
    ranking = Ranking()
    _by_name(ranking, reach.entry.path)
    learns = _signs_of_learning(reach)
    if learns:
        ranking.add(20, f"it learns: {', '.join(learns)}")
    if ranking.kind is Kind.OTHER and learns:
        ranking.kind = Kind.TRAIN
    if reach.entry.guarded:
        ranking.add(10, "it has a main guard")
    if line.flags and line.style not in ("plain", "globals"):
        ranking.add(10, f"it takes flags ({line.style})")
    if metrics:
        ranking.add(10, f"it reports {', '.join(metric.name for metric in metrics[:4])}")
    if _ASIDE.search(reach.entry.path):
        ranking.add(-30, "it stands aside")
    ranking.score -= 3 * reach.entry.path.count("/")
    return ranking


def _by_name(ranking: Ranking, path: str) -> None:
    stem = _stem(path)
    if TRAINS.search(stem):
        ranking.kind = Kind.TRAIN
        ranking.add(40, f"the name {stem}")
    elif _EVALUATES.search(stem):
        ranking.kind = Kind.EVALUATE
        ranking.add(30, f"the name {stem}")
    elif _STARTS.match(stem):
        ranking.add(15, f"the name {stem}")


def _signs_of_learning(reach: Reach) -> list[str]:
    signs: dict[str, None] = {}
    for _block, call in reach.calls():
        name = last_name(call.func)
        if (
            name == "backward"
            or (name == "step" and "optim" in dotted(call.func).lower())
            or (name in ("fit", "train_step", "partial_fit") and isinstance(call.func, ast.Attribute))
        ):
            signs[f".{name}()"] = None
        elif name.endswith("Trainer"):
            signs[name] = None
    for block in reach.blocks:
        if any(
            isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub) and _names_a_rate(node.value)
            for node in block.walk()
        ):
            signs["gradient descent"] = None
    return list(signs)[:3]


def _names_a_rate(node: ast.expr) -> bool:
    words = {last_name(inner).lower() for inner in ast.walk(node)}
    return bool(words & {"lr", "learning_rate", "alpha", "eta", "rate", "step_size", "grad", "gradient"})
