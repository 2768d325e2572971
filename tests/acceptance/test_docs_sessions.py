"""Tutorials and how-tos, typed as they stand: every command of a page in one shell, in order, from a clone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FOLLOWED = re.compile(r"^(labwright logs -f .*?)(#.*)?$", re.MULTILINE)  # a person leaves it by Ctrl-C
_STREAMED = re.compile(r"^(curl -sN .*)$", re.MULTILINE)  # likewise
_FAILS = re.compile(r"^(labwright wait .*?)(# failed.*)$", re.MULTILINE)  # and says so by its exit code
_SHELL = re.compile(r"^(labwright sim .* -- bash)$", re.MULTILINE)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def session_of(page: Path) -> str:
    """What a reader types: all that is neither output nor a file, but for the set-up, which is done."""
    blocks = [text for language, text in _BLOCK.findall(page.read_text()) if language == ""]
    typed = "".join(block for block in blocks if "make " not in block and "/.local/bin" not in block)
    typed = _FOLLOWED.sub(r"timeout -s INT 5 \1 || true", typed)
    typed = _STREAMED.sub(r"timeout -s INT 3 \1 || true", typed)
    typed = _FAILS.sub(r"! \1", typed)
    return "set -ex\n" + _SHELL.sub(r"\1 -ex", typed)


@pytest.mark.parametrize(
    ("page", "place"),
    [
        ("README.md", ""),
        ("docs/tutorial.md", ""),
        ("docs/tutorial-shared-gpus.md", ""),
        ("docs/tutorial-slurm.md", ""),
        ("docs/how-to/use-over-http.md", "examples/first-run"),
        ("docs/how-to/rehearse-with-simulated-gpus.md", ""),
    ],
)
def test_a_page_can_be_followed_to_its_end(page: str, place: str, tmp_path: Path) -> None:
    home, script = tmp_path / "home", tmp_path / "typed.sh"
    home.mkdir()
    script.write_text(session_of(ROOT / page))
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LABWRIGHT_LEASE_DIR": str(tmp_path / "leases"),
        "LANG": "C.UTF-8",
    }
    try:
        with script.open() as typed:
            done = subprocess.run(
                ["bash"], stdin=typed, env=environment, cwd=clone / place, capture_output=True, text=True
            )
    finally:
        for left in tmp_path.rglob(".labwright/server.json"):
            os.kill(json.loads(left.read_text())["pid"], signal.SIGTERM)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
