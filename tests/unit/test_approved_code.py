"""The second check of a run's code: which changes raise a doubt about the code it read."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from labwright.domain.approved_code import fact_of, packages_fact
from labwright.files import write_json
from labwright.hashes import content_of, packages_of
from labwright.sidecar.approved_code import LOADING_SECONDS, doubt_of, refusal_of


def listed(folder: Path) -> tuple[str, str]:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text("print(1)\n")
    facts = {fact_of("code/train.py"): content_of(folder / "code" / "train.py"), "environment": "x"}
    write_json(folder / "listing.json", {"facts": facts})
    return str(folder / "listing.json"), str(folder)


def test_a_file_that_changes_long_after_the_start_is_no_problem(tmp_path: Path) -> None:
    listing, project = listed(tmp_path)
    now, long_ago = time.time(), time.time() - LOADING_SECONDS - 5
    assert doubt_of(listing, project, now) is None
    (tmp_path / "code" / "train.py").write_text("print(2)\n")
    assert doubt_of(listing, project, now) is not None and doubt_of(listing, project, long_ago) is None
    shutil.rmtree(tmp_path / "code")
    assert doubt_of(listing, project, now) is not None and doubt_of(listing, project, long_ago) is None


def test_without_the_approval_record_no_run_starts_and_running_ones_continue(tmp_path: Path) -> None:
    listing, project = listed(tmp_path)
    Path(listing).unlink()
    refusal = refusal_of(listing, project)
    assert refusal is not None and refusal["reason"] == "code_changed"
    assert doubt_of(listing, project, time.time()) is None


def test_a_run_does_not_start_if_a_package_changed(tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    (packages / "numpy-1.0.dist-info").mkdir(parents=True)
    write_json(tmp_path / "listing.json", {"facts": {packages_fact(str(packages)): packages_of(packages)}})
    (packages / "__pycache__").mkdir()
    assert refusal_of(str(tmp_path / "listing.json"), str(tmp_path)) is None
    (packages / "numpy-1.0.dist-info").rename(packages / "numpy-2.0.dist-info")
    refusal = refusal_of(str(tmp_path / "listing.json"), str(tmp_path))
    assert refusal is not None and f"{packages} changed since the plan was approved" in refusal["error"]
    assert doubt_of(str(tmp_path / "listing.json"), str(tmp_path), time.time()) is not None


def test_files_that_runs_may_write_stop_no_run(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    facts = {fact_of(name): content_of(tmp_path / name) for name in ("results.json", "requirements.txt")}
    write_json(tmp_path / "listing.json", {"facts": facts})
    (tmp_path / "results.json").write_text('{"loss": 1}')
    assert refusal_of(str(tmp_path / "listing.json"), str(tmp_path)) is None
    (tmp_path / "requirements.txt").write_text("numpy\n")
    assert refusal_of(str(tmp_path / "listing.json"), str(tmp_path)) is not None
