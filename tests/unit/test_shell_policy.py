"""Commands in an agent's shell: training commands are answered with a proposed run, all others pass.

The spellings are in `policy_corpus/`, one per paragraph; add new ones there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.agent.policy import ShellVerdict, judge

CORPUS = Path(__file__).with_name("policy_corpus")
TRAINS = "import torch\nfor epoch in range(9):\n    loss.backward()\n    optimizer.step()\n"
PROJECT = {
    "train.py": TRAINS,
    "work.py": f"#!/usr/bin/env python\n{TRAINS}def main(): pass\n",
    "main.py": "from lab.engine import go\ngo()\n",
    "evaluate.py": "import torch\n",
    "src/lab/engine.py": f"def go():\n    {TRAINS.replace(chr(10), chr(10) + '    ')}\n",
    "src/lab/finetune.py": TRAINS,
    "lab/train.py": TRAINS,
    "run.sh": "#!/bin/bash\nset -e\npython work.py --lr $1\n",
    "job.sbatch": "#!/bin/bash\n#SBATCH --gres=gpu:1\npython work.py\n",
    "plot.py": "import json\nimport matplotlib.pyplot as plt\nplt.plot(json.load(open('results.json')))\n",
    "scripts/plot_training.py": "import matplotlib.pyplot as plt\nplt.savefig('x.png')\n",
    "scripts/summarize_experiments.py": "print(1)\n",
    "scripts/download_data.py": "import urllib.request\n",
    "scripts/count_params.py": "import torch\nprint(sum(p.numel() for p in torch.load('m').values()))\n",
    "scripts/list_results.sh": "ls results\ncat results.json\n",
    "Makefile": (
        "PY = python\nall: data figures-and-training\n\nfigures:\n\t$(PY) plot.py\nclean:\n\trm -rf results\n"
        "data:\n\techo data\ntest:\n\tpytest -q\nfigures-and-training: figures\n\t@$(PY) work.py --lr 1\n"
        "train:\n\t$(PY) train.py\n"
    ),
    "justfile": "train:\n    python train.py\n",
    "README.md": "Run python train.py\n",
    "notes.md": "To run it: `python train.py`, or system('bash run.sh').\n",
    "go.pl": "exec 'python', 'work.py';\n",
    "go.js": "require('child_process').execSync('python train.py')\n",
    "count.js": "console.log([1, 2].length)\n",
    "results.json": "{}",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("policy")
    for name, text in PROJECT.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def corpus(name: str) -> list[str]:
    lines = (CORPUS / name).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#:"))
    return [entry.strip("\n") for entry in text.split("\n\n") if entry.strip()]


def test_command_that_should_be_a_run_is_caught(project: Path) -> None:
    assert [command for command in corpus("runs.txt") if judge(command, project) is None] == []


def test_other_commands_pass(project: Path) -> None:
    bothered = {command: found.why for command in corpus("harmless.txt") if (found := judge(command, project))}
    assert bothered == {}


def test_corpus_is_wide() -> None:
    assert len(set(corpus("runs.txt"))) >= 90
    assert len(set(corpus("harmless.txt"))) >= 90


def caught(command: str, project: Path) -> ShellVerdict:
    found = judge(command, project)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("command", "proposed"),
    [
        ("python train.py --lr 0.1", "python train.py --lr 0.1"),
        ("nohup python train.py --lr 0.1 > log 2>&1 &", "python train.py --lr 0.1"),
        ("CUDA_VISIBLE_DEVICES=1 timeout 60 python train.py", "CUDA_VISIBLE_DEVICES=1 python train.py"),
        ("for lr in 0.1 0.2; do python train.py --lr $lr; done", "python train.py --lr 0.1"),
        ("source .venv/bin/activate && python train.py &", "source .venv/bin/activate && python train.py"),
        ("sbatch job.sbatch 3", "bash job.sbatch 3"),
        ("bash run.sh 0.1", "bash run.sh 0.1"),
        ("make train", "make train"),
        ("torchrun --nproc_per_node 2 work.py", "torchrun --nproc_per_node 2 work.py"),
        ("bash -c 'python train.py \"a b\"'", "python train.py 'a b'"),
        ("cat train.py | python", "cat train.py | python"),
        ("python - --lr 0.1 < train.py &", "python - --lr 0.1 < train.py"),
        ("timeout 60 python train.py < answers.txt", "timeout 60 python train.py < answers.txt"),
        ("echo 'python train.py --lr 0.1' | bash", "python train.py --lr 0.1"),
        ("find . -name 'tr*.py' -exec python {} \\; &", "find . -name 'tr*.py' -exec python {} \\;"),
    ],
)
def test_proposed_run_does_what_was_meant(command: str, proposed: str, project: Path) -> None:
    assert caught(command, project).proposal.command == proposed


def test_folder_of_the_run_is_that_of_the_loop(project: Path) -> None:
    found = caught("cd src; for s in 1 2; do python -m lab.finetune --seed $s; done", project)
    assert (found.proposal.command, found.proposal.folder) == ("python -m lab.finetune --seed 1", "src")


def test_refusal_says_why(project: Path) -> None:
    assert caught("python work.py", project).why == "work.py trains or evaluates: it has a loop over epochs."
    assert "run.sh" in caught("bash run.sh", project).why


@pytest.mark.parametrize(
    "command", ["'", "$(", "if", "<<", "\x00", "((((", "f() { f; }; f", "alias a=a; a", "a" * 30_000]
)
def test_broken_and_endless_commands_are_read_to_an_end(command: str, project: Path) -> None:
    judge(command, project)


@pytest.mark.parametrize(
    "command", ["x=ab;" + "x=$x$x;" * 200 + "echo $x", "for a in 1 2 3 4 5 6 7 8; do " * 8 + "ls; " + "done; " * 8]
)
def test_command_that_loops_too_often_is_not_followed(command: str, project: Path) -> None:
    assert "loops too often" in caught(command, project).why
