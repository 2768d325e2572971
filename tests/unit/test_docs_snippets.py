"""File snippets in the docs are accepted by their readers: settings, sweeps, Python, JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from labwright.cli.sweeps.file import read_sweep_file
from labwright.compute.notify.channels import load_channels
from labwright.compute.runs.alert_rules import project_rules
from labwright.compute.slurm.resources import load_defaults
from labwright.llm.choice import load_targets
from labwright.paths import ProjectPaths
from labwright.settings import load_settings, unknown_tables
from tests.unit.test_docs import ROOT

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TESTED_APART = ROOT / "docs" / "reference" / "workflow.md"  # checked by test_workflow_docs.py
_OF_OTHERS = ("mcp_servers", "scrape_configs")  # files of Codex and Prometheus, which have their own formats


def snippets(*languages: str) -> list[object]:
    found = []
    for page in sorted({*(ROOT / "docs").rglob("*.md")} - {_TESTED_APART}):
        for number, (language, text) in enumerate(_BLOCK.findall(page.read_text()), 1):
            if language in languages:
                found.append(pytest.param(text, id=f"{page.stem}-{number}"))
    return found


@pytest.mark.parametrize("text", snippets("toml"))
def test_settings_are_accepted(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if any(name in tomllib.loads(text) for name in _OF_OTHERS):
        return
    paths = ProjectPaths(tmp_path)
    paths.config.write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    secret = tmp_path / ".config" / "pager.url"
    secret.parent.mkdir()
    secret.write_text("http://127.0.0.1:9/\n")
    secret.chmod(0o600)
    assert unknown_tables(tmp_path) == []
    project_rules(paths.config)
    load_defaults(tmp_path)
    load_targets(tmp_path, load_settings(tmp_path), {"ANTHROPIC_API_KEY": "k"})
    load_channels(paths, {"SLACK_HOOK_URL": "http://127.0.0.1:9/"})


@pytest.mark.parametrize("text", snippets("python"))
def test_python_runs(text: str, tmp_path: Path) -> None:
    compile(text, "snippet", "exec")
    if "LABWRIGHT_RUN_TOKEN" in text:
        return  # it talks to the server of its run
    project = shutil.copytree(ROOT / "examples" / "argparse-digits", tmp_path / "project")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=project, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", snippets("yaml"))
def test_yaml_is_accepted(text: str, tmp_path: Path) -> None:
    if any(text.startswith(name) for name in _OF_OTHERS):
        assert yaml.safe_load(text)
        return
    whole = "name: n\nbase_command: python3 train.py\nmetric: {key: loss, goal: min}\nparameters: {lr: [1, 2]}\n"
    texts = [text] if "base_command" in text else [whole + line + "\n" for line in text.splitlines()]
    for number, each in enumerate(texts):
        file = tmp_path / f"{number}.yaml"
        file.write_text(each)
        assert read_sweep_file(file)


@pytest.mark.parametrize("text", snippets("json"))
def test_json_is_valid(text: str) -> None:
    assert json.loads(text if text.startswith("{") else f"{{{text}}}")
