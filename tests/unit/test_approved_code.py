"""The second look at a run's code: which changes leave a doubt about what it read."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from labwright.domain.approved_code import fact_of
from labwright.files import write_json
from labwright.hashes import content_of
from labwright.sidecar.approved_code import LOADING_SECONDS, doubt_of, refusal_of


def listed(folder: Path) -> tuple[str, str]:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text("print(1)\n")
    facts = {fact_of("code/train.py"): content_of(folder / "code" / "train.py"), "environment": "x"}
    write_json(folder / "listing.json", {"facts": facts})
    return str(folder / "listing.json"), str(folder)


def test_a_file_that_is_changed_or_gone_long_after_the_start_is_no_doubt(tmp_path: Path) -> None:
    listing, project = listed(tmp_path)
    now, long_ago = time.time(), time.time() - LOADING_SECONDS - 5
    assert doubt_of(listing, project, now) is None
    (tmp_path / "code" / "train.py").write_text("print(2)\n")
    assert doubt_of(listing, project, now) is not None and doubt_of(listing, project, long_ago) is None
    shutil.rmtree(tmp_path / "code")
    assert doubt_of(listing, project, now) is not None and doubt_of(listing, project, long_ago) is None


def test_without_the_approval_nothing_begins_and_what_runs_is_left_alone(tmp_path: Path) -> None:
    listing, project = listed(tmp_path)
    Path(listing).unlink()
    refusal = refusal_of(listing, project)
    assert refusal is not None and refusal["reason"] == "code_changed"
    assert doubt_of(listing, project, time.time()) is None
