"""The whole scan: entry points, excluded files, and robustness."""

# ruff: noqa: E501 - small projects, written as their authors would
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.errors import Invalid
from labwright.planning.scan import Kind, ProjectScan, ScanLimits, SetBy, rehearsal_flags, run_command, scan_project
from labwright.planning.scan import project as project_scan
from labwright.planning.scan.facts import Environment
from tests.support.scanning import scanned, write

SCRIPT = "import argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--lr', type=float, default=0.1)\n    p.parse_args()\nif __name__ == '__main__':\n    main()\n"


def scan(folder: Path, files: dict[str, str], limits: ScanLimits | None = None) -> ProjectScan:
    return scan_project(write(folder, files), environ={"PATH": ""}, limits=limits)


def why(found: ProjectScan) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in found.skipped}


def test_entry_points_are_ranked_with_reasons(tmp_path: Path) -> None:
    files = dict.fromkeys(("train.py", "evaluate.py", "tools/convert.py", "tests/test_train.py", "main.py"), SCRIPT)
    found = scan(tmp_path, files)
    assert [(entry.path, entry.kind) for entry in found.entry_points] == [
        ("train.py", Kind.TRAIN), ("evaluate.py", Kind.EVALUATE), ("main.py", Kind.OTHER), ("tools/convert.py", Kind.OTHER),
    ]  # fmt: skip
    assert "the name train" in found.entry_points[0].reasons


def test_script_in_a_folder_with_a_space_is_one_word_of_the_command(tmp_path: Path) -> None:
    (entry,) = scan(tmp_path, {"my code/train.py": SCRIPT}).entry_points
    assert entry.command == "python 'my code/train.py'"


def test_bare_script_is_found_whatever_its_name(tmp_path: Path) -> None:
    head = "import os\nLR = float(os.environ.get('LR', '0.1'))\n"
    loop = "for step in range(3):\n    print(f'loss={LR / (step + 1)}')\n"
    files = {"digits.py": head + loop, "constants.py": head}
    (entry,) = scan(tmp_path, files).entry_points
    assert (entry.path, [flag.name for flag in entry.flags]) == ("digits.py", ["lr"])


def test_modules_and_console_scripts_are_found(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        {
            "pyproject.toml": "[project]\nname = 'nets'\n[project.scripts]\nnets-train = 'nets.cli:run'\n",
            "src/nets/__init__.py": "",
            "src/nets/train.py": "from . import model\n" + SCRIPT,
            "src/nets/model.py": "",
            "src/nets/cli.py": "import argparse\ndef run():\n    p = argparse.ArgumentParser()\n    p.add_argument('--wd')\n",
            "pkg/__init__.py": "",
            "pkg/eval.py": "from pkg import data\n" + SCRIPT,
            "pkg/data.py": "",
        },
    )
    commands = {entry.path: entry.command for entry in found.entry_points}
    assert commands == {
        "src/nets/train.py": "PYTHONPATH=src python -m nets.train",
        "src/nets/cli.py": "nets-train",
        "pkg/eval.py": "python -m pkg.eval",
    }
    cli = found.entry_point("nets-train")
    assert cli and [flag.name for flag in cli.flags] == ["wd"]


def test_scan_survives_json(tmp_path: Path) -> None:
    found = scan(tmp_path, {"train.py": SCRIPT, "environment.yml": "name: x\n"})
    assert json.loads(json.dumps(found.to_dict()))["entry_points"][0]["flags"][0]["option"] == "--lr"


def test_nothing_of_the_project_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    bomb = f"open({str(mark)!r}, 'w')\n"
    found = scan(
        tmp_path / "p",
        {
            "train.py": bomb + SCRIPT,
            "setup.py": bomb,
            "conftest.py": bomb,
            "conf.yaml": f"a: !!python/object/apply:builtins.open [{mark}, w]\n",
            "sitecustomize.py": bomb,
            "argparse.py": bomb,
        },
    )
    assert found.entry_points
    assert not mark.exists()


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "train.py": SCRIPT,
            "old_train.py": "print 'hello'\nif __name__ == '__main__': pass\n",
            "main.py": "if __name__ == '__main__':\n  def (\n",
            "deep_train.py": "x = " + "(" * 5000 + ")" * 5000 + "\n",
            "note.ipynb": "{}",
            ".venv/pyvenv.cfg": "version = 3.11.1\n",
            ".venv/lib/train.py": SCRIPT,
            "node_modules/train.py": SCRIPT,
        },
    )
    (tmp_path / "binary_train.py").write_bytes(b"\0\1\2__main__")
    (tmp_path / "latin_train.py").write_bytes(b"# caf\xe9\n" + SCRIPT.encode())
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "outside.py").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "train_pipe.py")
    found = scan_project(tmp_path, environ={"PATH": ""})
    reasons = why(found)
    assert [entry.path for entry in found.entry_points] == ["latin_train.py", "train.py"]
    assert reasons["old_train.py"] == "Python 2, line 1"
    assert reasons["main.py"].startswith("syntax error in line")
    assert reasons["binary_train.py"] == "binary"
    assert reasons["loop"] == "a link to a folder"
    assert reasons["note.ipynb"] == "notebooks are not read"
    assert reasons[".venv"] == "a Python environment"
    assert "deep_train.py" in reasons


def test_limits_hold_and_are_reported(tmp_path: Path) -> None:
    files = {f"data/{index}.txt": "x" for index in range(60)} | {
        "train.py": SCRIPT,
        "a/b/c/deep.py": SCRIPT,
        "big_train.py": "#" * 5000,
    }
    found = scan(tmp_path, files, ScanLimits(entries_of_a_folder=50, depth=2, bytes_of_a_file=1000))
    assert [entry.path for entry in found.entry_points] == ["train.py"]
    reasons = why(found)
    assert "data" in reasons["data"] and "deeper" in reasons["a/b/c"] and "5000 bytes" in reasons["big_train.py"]
    assert found.complete
    few = scan(tmp_path, {}, ScanLimits(files=10))
    assert (few.complete, few.files_seen) == (False, 10)
    assert not scan(tmp_path, {}, ScanLimits(seconds=0)).complete


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        scan_project(tmp_path / "nowhere")


def test_two_thousand_files_take_less_than_two_seconds(tmp_path: Path) -> None:
    body = "\n".join(f"def f{n}(x):\n    y = x + {n}\n    return [y for _ in range({n})]" for n in range(30))
    files = {
        f"pkg{n % 40}/module_{n}.py": f"import os\nimport pkg{(n + 1) % 40}.module_{n + 1}\n{body}\n"
        for n in range(1990)
    }
    write(tmp_path, files | {f"train_{n}.py": f"from pkg1 import module_{n}\n{SCRIPT}" for n in range(10)})
    started = time.process_time()
    found = scan_project(tmp_path, environ={"PATH": ""})
    assert (found.files_seen, len(found.entry_points)) == (2000, 10)
    assert time.process_time() - started < 2


def test_exponential_yaml_is_not_expanded(tmp_path: Path) -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(24)
    )
    code = "import hydra\n@hydra.main(config_path='.', config_name='config')\ndef main(cfg): ...\nif __name__ == '__main__':\n    main()\n"
    found = scan(tmp_path, {"train.py": code, "config.yaml": bomb})
    assert "aliases" in why(found)["config.yaml"]


def test_earlier_launches_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "train.py": SCRIPT,
            "job.sbatch": "#!/bin/bash\n#SBATCH --gres=gpu:1\n#SBATCH -t 1:00:00\nmodule load cuda\nsrun python train.py \\\n    --lr 0.1\n",
            "submit_all.sh": "# python train.py --no\nfor s in 1 2; do sbatch job.sbatch; done\n",
            "Makefile": "LR := 1\ntrain: data\n\t@python train.py --lr $(LR)\ntest:\n\tpython -m pytest\n",
            "README.md": "# x\n```bash\n$ pip install -r requirements.txt\n$ python train.py --lr 3\n```\npython is nice\n",
        },
    )
    history = tmp_path.parent / f"{tmp_path.name}-history"
    history.write_text(": 1700000000:0;torchrun --nproc 2 train.py\nls -la\npython show.py\n")
    quiet = scan_project(tmp_path, environ={"PATH": ""}, earlier_runs=["python train.py --lr 9"])
    assert [(launch.kind, launch.command, launch.where) for launch in quiet.launches] == [
        ("run", "python train.py --lr 9", "runs"),
        ("make", "python train.py --lr $(LR)", "Makefile:3 (train)"),
        ("readme", "python train.py --lr 3", "README.md:4"),
        ("slurm", "srun python train.py --lr 0.1", "job.sbatch:5"),
        ("script", "for s in 1 2; do sbatch job.sbatch; done", "submit_all.sh:2"),
    ]
    assert quiet.launches[3].options == ("--gres=gpu:1", "-t 1:00:00")
    told = scan_project(tmp_path, environ={"PATH": ""}, history=str(history))
    assert told.launches[-1].command == "torchrun --nproc 2 train.py"


def test_evaluation_files_are_listed_for_protection(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        {
            "train.py": SCRIPT,
            "eval.py": SCRIPT,
            "nets/metrics.py": "",
            "data/test.csv": "1",
            "data/train.csv": "1",
            "tests/test_x.py": "",
        },
    )
    assert {file.path for file in found.evaluation_files} == {"eval.py", "nets/metrics.py", "data/test.csv"}


def test_shortest_rehearsal_comes_first(tmp_path: Path) -> None:
    code = SCRIPT.replace(
        "p.parse_args()",
        "[p.add_argument(n, type=int) for n in ()]\n    p.add_argument('--epochs', type=int)\n    p.add_argument('--debug', action='store_true')\n    p.add_argument('--max-steps', type=int)",
    )
    entry = scanned(tmp_path, {"train.py": code})
    assert [(flag.option, value) for flag, value in rehearsal_flags(entry.flags)] == [
        ("--max-steps", 2), ("--epochs", 1), ("--debug", True),
    ]  # fmt: skip


def test_commands_follow_each_flag_style(tmp_path: Path) -> None:
    code = "import os\nLR = float(os.environ.get('LR', '1'))\nNAME = os.environ.get('NAME', '')\nSIZE = 3\nfor i in range(3):\n    print('loss', i)\n"
    entry = scanned(tmp_path, {"train.py": code})
    assert run_command(entry, Environment(), {"lr": 0.1, "name": "a b"}) == "LR=0.1 NAME='a b' python train.py"
    assert entry.flag("SIZE") and entry.flag("SIZE").set_by is SetBy.EDIT  # type: ignore[union-attr]
    with pytest.raises(Invalid, match="cannot be set from outside"):
        run_command(entry, Environment(), {"SIZE": 4})
    with pytest.raises(Invalid, match="has no flag"):
        run_command(entry, Environment(), {"depth": 4})


def test_switches_and_subcommands_have_the_right_position(tmp_path: Path) -> None:
    code = """
        import argparse
        p = argparse.ArgumentParser()
        p.add_argument("--quiet", action="store_true")
        t = p.add_subparsers().add_parser("fit")
        t.add_argument("--amp", action=argparse.BooleanOptionalAction, default=False)
        t.add_argument("--no-ema", dest="ema", action="store_false")
        t.add_argument("--dims", nargs="+", type=int)
        p.parse_args()
    """
    entry = scanned(tmp_path, {"train.py": code}).under("fit")
    values = {"quiet": True, "amp": False, "ema": True, "dims": [1, 2]}
    assert run_command(entry, Environment(), values) == "python train.py --quiet fit --no-amp --dims 1 2"
    assert run_command(entry, Environment(), {"ema": False}) == "python train.py fit --no-ema"


def test_unchanged_script_is_read_once_and_a_changed_one_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = project_scan.read_entry_points

    def counted(*given: Any) -> Any:
        read.append("once")
        return real(*given)

    monkeypatch.setattr(project_scan, "read_entry_points", counted)
    script = tmp_path / "train.py"
    script.write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n")
    (tmp_path / "notes.py").write_text("def broken(:\n")
    first, second = scan_project(tmp_path), scan_project(tmp_path)
    assert read == ["once"] and (first.entry_points, first.skipped) == (second.entry_points, second.skipped)
    times = script.stat()
    script.write_text(script.read_text().replace("--lr", "--wd"))  # the same length as before
    os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
    (entry,) = scan_project(tmp_path).entry_points
    assert [flag.name for flag in entry.flags] == ["wd"] and read == ["once"] * 2
