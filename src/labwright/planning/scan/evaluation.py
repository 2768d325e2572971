"""Files that decide what a result means: evaluation code and held-out data. A plan must leave them as they are."""

from __future__ import annotations

import re

from labwright.planning.scan.facts import EntryPoint, Kind, ProtectedFile
from labwright.planning.scan.walk import Tree

_CODE = re.compile(
    r"(^|[_-])(eval|evaluate|evaluation|evaluator|metrics?|scor(e|ing|er)|benchmark|judge)([_-]|$)", re.IGNORECASE
)
_DATA = re.compile(
    r"(^|[_.-])(test|val|valid|validation|dev|eval|heldout|holdout|gold|labels?)([_.-]|$)", re.IGNORECASE
)
_DATA_ENDS = (".csv", ".tsv", ".json", ".jsonl", ".npz", ".npy", ".parquet", ".txt", ".pt", ".bin", ".arrow", ".h5")
_MOST = 200
HELD_OUT = "held-out data, by its name"


def read_evaluation_files(tree: Tree, entries: list[EntryPoint]) -> list[ProtectedFile]:
    started = {entry.path for entry in entries if entry.kind is Kind.EVALUATE}
    found = [ProtectedFile(path=path, reason=reason) for path in tree.files if (reason := _reason(path, started))]
    if len(found) > _MOST:
        tree.skip(".", f"{len(found) - _MOST} more evaluation files")
    return found[:_MOST]


def _reason(path: str, started: set[str]) -> str:
    folder, _, name = path.rpartition("/")
    stem, _, _end = name.partition(".")
    if path in started:
        return "evaluates"
    if (
        name.endswith(".py")
        and not name.startswith("test_")
        and (_CODE.search(stem) or _CODE.search(folder.rpartition("/")[2]))
    ):
        return "evaluation code, by its name"
    if (
        name.endswith(_DATA_ENDS)
        and "requirements" not in name
        and (_DATA.search(stem) or _DATA.search(folder.rpartition("/")[2]))
    ):
        return HELD_OUT
    return ""
