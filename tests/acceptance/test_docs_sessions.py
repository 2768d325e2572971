"""Type every command of every page in one shell, in order, from a clone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.model_server import model_server
from tests.support.typed_page import ROOT, THE_END, Page, block_of, commands_of
from tests.unit.test_docs import pages

pytestmark = pytest.mark.timeout(600)
_DIGITS, _FIRST = "examples/argparse-digits", "examples/first-run"
_OF_OTHERS = ("ssh", "claude", "codex", "torchrun")  # optional programs; the replacements accept any arguments
_PIP = {"pip install -r requirements.txt": "true"}  # already installed
_ALL_FINISH = """
ids='import json, sys; print(*(run["id"] for run in json.load(sys.stdin)))'
for run in $(labwright ps -a --json | python3 -c "$ids"); do labwright wait $run; done
"""
_ENVIRONMENT = """
python -m venv .venv
python -c 'import numpy; print(numpy.__path__[0] + "/..")' > $(echo .venv/lib/python3*/site-packages)/ours.pth
labwright up -d
"""
_FIRST_PLAN = """
first_plan() { labwright plan list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[-1]["id"])'; }
"""
_REVIEWED = """
{ until grep -q y/N ~/shown; do sleep 0.1; done; echo y; } | script -qefc "labwright plan review $(first_plan)" ~/shown
"""
_ASKED = """
labwright up -d
labwright run --name long sleep 300
labwright chat "stop long" || [ $? = 4 ]  # it waits for an answer
question=$(labwright approvals --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
url=$(labwright url)/approvals/$question/respond token=$(cat .labwright/token)
"""
_SKILL = f"""
labwright up -d
mkdir -p .labwright/skills/house-rules
cat > .labwright/skills/house-rules/SKILL.md <<'END'
{block_of("docs/how-to/write-a-skill.md", "markdown")}
END
"""

PAGES = [
    Page(path="README.md", before="labwright up -d"),  # started by make up
    Page(path="docs/tutorial.md"),
    Page(path="docs/tutorial-shared-gpus.md"),
    Page(path="docs/tutorial-slurm.md"),
    Page(path="docs/how-to/choose-a-model.md", instead={"API_KEY=…": "API_KEY=a-key"}),
    Page(path="docs/how-to/dashboard.md"),
    Page(path="docs/how-to/log-metrics.md", place=_FIRST, before="labwright up -d", after=_ALL_FINISH),
    Page(
        path="docs/how-to/notifications.md",
        before=_ASKED,
        instead={"curl ": "curl --fail-with-body "},
        after="! labwright wait long",
    ),
    Page(
        path="docs/how-to/plan-an-experiment.md",
        place=_DIGITS,
        before=_FIRST_PLAN + _ENVIRONMENT,
        instead={
            "labwright plan review plan-a2mcje2jm6": _REVIEWED,
            "plan-a2mcje2jm6": "$(first_plan)",
        },
        after=_ALL_FINISH,
    ),
    Page(
        path="docs/how-to/recover-a-database.md",
        place=_FIRST,
        before="mkdir $HOME/safe $HOME/other; labwright up -d; labwright run --wait -- python3 train.py",
        instead={
            "/mnt/safe/": "$HOME/safe/",
            "/other/project": "$HOME/other",
            ".labwright/backups/labwright-20261116T090000Z.db": "$(ls .labwright/backups/*.db | head -n 1)",
        },
        after="labwright show last",
    ),
    Page(path="docs/how-to/rehearse-with-simulated-gpus.md"),
    Page(
        path="docs/how-to/share-a-gpu-machine.md",
        place=_FIRST,
        before="touch preprocess.py\nlabwright sim gpus 4 -- bash -ex\nlabwright up -d",
        after=_ALL_FINISH,
    ),
    Page(
        path="docs/how-to/slurm.md",
        place=_FIRST,
        before="labwright sim slurm --nodes 2 --gpus 4 -- bash -ex",
        instead={
            "cd /shared/me/project\n": "",
            "labwright sim slurm": f"{_ALL_FINISH}\nlabwright down\nexit\nlabwright sim slurm",
        },
        after=_ALL_FINISH,
    ),
    Page(
        path="docs/how-to/sweeps.md",
        place="examples/sweep",
        before="labwright up -d\nlabwright sweep adaptive.yaml --wait",
    ),
    Page(
        path="docs/how-to/talk-to-it.md",
        before="labwright up -d\n! labwright run --wait --name bad 'echo ValueError: no; exit 1'",
    ),
    Page(path="docs/how-to/use-over-http.md", place=_FIRST),
    Page(path="docs/how-to/use-with-editors.md", before="labwright up -d", instead={"/home/you/project": "$PWD"}),
    Page(path="docs/how-to/watch-the-server.md", before="labwright up -d"),
    Page(
        path="docs/how-to/wild-mode.md",
        place=_DIGITS,
        before=_ENVIRONMENT,
        instead={
            "40 --wait": "40 --wait || [ $? = 1 ]",  # its budget may end before the search does, which asks the user
            "labwright wild show ": 'labwright wild "improve val_acc by tuning lr"\nlabwright wild show ',
        },
    ),
    Page(path="docs/how-to/write-a-skill.md", before=_SKILL),
    Page(path="docs/reference/security.md"),
    Page(
        path="examples/argparse-digits/README.md",
        place=_DIGITS,
        instead={"python -m venv .venv && .venv/bin/pip install -r requirements.txt": "true", ".venv/bin/": ""},
    ),
    Page(path="examples/bare-script/README.md", place="examples/bare-script"),
    Page(path="examples/click-ngrams/README.md", place="examples/click-ngrams", instead=_PIP),
    Page(path="examples/dataclass-moons/README.md", place="examples/dataclass-moons"),
    Page(path="examples/first-run/README.md"),
    Page(path="examples/sweep/README.md", place="examples/sweep"),
    Page(path="examples/typer-walk/README.md", place="examples/typer-walk", instead=_PIP),
    Page(path="examples/yaml-config/README.md", place="examples/yaml-config", instead=_PIP),
]


def test_no_page_with_commands_is_left_out() -> None:
    with_commands = {str(page.relative_to(ROOT)) for page in pages() if commands_of(page)}
    assert with_commands == {page.path for page in PAGES}


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(page, id=page.path) for page in PAGES])
def test_page_can_be_followed_to_its_end(page: Page, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    try:
        with model_server("anthropic") as model:
            environment = _environment(tmp_path) | {"ANTHROPIC_BASE_URL": model.url}
            # Use a pipe: a shell that exits has read ahead in a file, and the rest would be lost.
            done = subprocess.run(
                ["bash"], input=page.session, env=environment, cwd=clone / page.place, capture_output=True, text=True
            )
    finally:
        for left in tmp_path.rglob(".labwright/server.json"):
            os.kill(json.loads(left.read_text())["pid"], signal.SIGTERM)
    assert done.returncode == 0 and THE_END in done.stdout, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def _environment(tmp_path: Path) -> dict[str, str]:
    home, others = tmp_path / "home", tmp_path / "others"
    home.mkdir()
    others.mkdir()
    for name in _OF_OTHERS:
        (others / name).symlink_to("/bin/true")
    return {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{others}:{os.environ['PATH']}",
        "LABWRIGHT_LEASE_DIR": str(tmp_path / "leases"),
        "LANG": "C.UTF-8",
    }
