"""What can be said of a goal before anything is made of it."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.planning.goals.script import read_script
from labwright.planning.goals.words import split
from labwright.planning.record.input import check_request
from labwright.planning.scan import ProjectScan


def check_goal(goal: str, report: str, scan: ProjectScan) -> None:
    check_request(goal, report, "")
    script = read_script(split(goal), scan)
    if script.missing:
        raise Invalid(script.why_missing, hint=_meant(script.missing, scan), field=("goal",))


def _meant(missing: str, scan: ProjectScan) -> str:
    paths = [entry.path for entry in scan.entry_points]
    names = {Path(path).name: path for path in paths}
    close = get_close_matches(Path(missing).name, names, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {names[close[0]]}? Say the goal again with that name."
    if paths:
        return f"There is: {', '.join(paths[:4])}."
    return "No script that can be started was found in this project."
