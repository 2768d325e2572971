"""Flags are read as the script defines them, in every common style."""

# ruff: noqa: E501 - small projects, written as their authors would
from __future__ import annotations

from pathlib import Path

import pytest

from labwright.planning.scan import Role, SetBy
from tests.support.scanning import facts, scanned, settable


def test_argparse_with_all_its_features(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                import argparse, os
                DEFAULT = 3e-4
                MODELS = {"mlp": None, "cnn": None}
                def str2bool(x): return x == "1"
                parser = argparse.ArgumentParser()
                parser.add_argument("data", help="where the data is")
                parser.add_argument("-b", "--batch-size", type=int, default=8 * 4, help="a  batch")
                group = parser.add_argument_group("x")
                group.add_argument("--lr", type=float, default=DEFAULT)
                parser.add_argument("--model", choices=MODELS.keys(), default="mlp")
                parser.add_argument("--amp", action="store_true")
                parser.add_argument("--no-shuffle", dest="shuffle", action="store_false")
                parser.add_argument("--ema", action=argparse.BooleanOptionalAction, default=True)
                parser.add_argument("--layers", type=int, nargs="+", default=[1, 2])
                parser.add_argument("--flip", type=str2bool, default=False)
                parser.add_argument("--out", required=True)
                parser.add_argument("--tag", default=os.environ.get("TAG", "none"))
                parser.add_argument("--gpus", default=len(os.listdir("/")))
                parser.add_argument("--version", action="version", version="1")
                parser.set_defaults(amp=True)
                args = parser.parse_args()
            """
        },
    )
    flags = settable(entry)
    assert entry.style == "argparse"
    assert list(flags) == [
        "data",
        "batch_size",
        "lr",
        "model",
        "amp",
        "shuffle",
        "ema",
        "layers",
        "flip",
        "out",
        "tag",
        "gpus",
    ]
    assert facts(flags["data"], "set_by", "required") == (SetBy.POSITIONAL, True)
    assert facts(flags["batch_size"], "option", "aliases", "type", "default", "help") == (
        "--batch-size", ("-b",), "int", 32, "a batch",
    )  # fmt: skip
    assert flags["lr"].default == 3e-4
    assert facts(flags["model"], "choices", "default") == (("mlp", "cnn"), "mlp")
    assert facts(flags["amp"], "type", "takes_value", "default") == ("bool", False, True)
    assert facts(flags["shuffle"], "option", "default", "takes_value") == ("--no-shuffle", True, False)
    assert facts(flags["ema"], "negative", "default") == ("--no-ema", True)
    assert facts(flags["layers"], "type", "default") == ("list[int]", [1, 2])
    assert facts(flags["flip"], "type", "takes_value") == ("bool", True)
    assert (flags["out"].required, flags["out"].role, flags["tag"].default) == (True, Role.OUTPUT, "none")
    assert flags["gpus"].note == "the default is made at run time"


def test_argparse_across_files_parents_and_helpers(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                import argparse
                from options.base import common_parser, add_optim_args as add
                import other
                def main():
                    parser = argparse.ArgumentParser(parents=[common_parser()])
                    add(parser)
                    for name in ("alpha", "beta"):
                        parser.add_argument(f"--{name}", type=float, default=0.5)
                    for key, value in {"depth": 3, "rate": 0.1}.items():
                        parser.add_argument("--" + key, default=value, type=type(value))
                    parser.parse_args()
                if __name__ == "__main__":
                    main()
            """,
            "options/base.py": """
                import argparse
                def common_parser():
                    p = argparse.ArgumentParser(add_help=False)
                    p.add_argument("--seed", type=int, default=1)
                    return p
                def add_optim_args(parser):
                    parser.add_argument("--lr", type=float, default=0.1)
                def never_called(parser):
                    parser.add_argument("--ghost")
            """,
            "other.py": """
                import argparse
                if __name__ == "__main__":
                    argparse.ArgumentParser().add_argument("--of-another-script")
            """,
        },
    )
    flags = settable(entry)
    assert sorted(flags) == ["alpha", "beta", "depth", "lr", "rate", "seed"]
    assert facts(flags["depth"], "type", "default") == ("int", 3)
    assert flags["lr"].where == "options/base.py:8"


def test_argparse_subparsers_give_each_command_its_flags(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "main.py": """
                import argparse
                def add_common(p):
                    p.add_argument("--seed", type=int)
                def main():
                    parser = argparse.ArgumentParser()
                    parser.add_argument("--verbose", action="store_true")
                    sub = parser.add_subparsers(dest="cmd")
                    train = sub.add_parser("train")
                    train.add_argument("--lr", type=float)
                    group = train.add_argument_group("more")
                    group.add_argument("--wd", type=float)
                    evaluate = sub.add_parser("eval")
                    evaluate.add_argument("--ckpt")
                    for p in (train, evaluate):
                        add_common(p)
                main()
            """
        },
        "main.py",
    )
    assert entry.commands == ("train", "eval")
    assert {(flag.command, flag.name) for flag in entry.flags} == {
        ("", "verbose"), ("train", "lr"), ("train", "wd"), ("eval", "ckpt"), ("train", "seed"), ("eval", "seed"),
    }  # fmt: skip


def test_arguments_registered_by_classes_are_found_behind_a_registry(tmp_path: Path) -> None:
    """As in fairseq: only the run decides which class adds its arguments."""
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                import argparse
                from models import REGISTRY
                def main():
                    parser = argparse.ArgumentParser()
                    parser.add_argument("--arch", default="lstm")
                    args, _ = parser.parse_known_args()
                    REGISTRY[args.arch].add_args(parser)
                if __name__ == "__main__":
                    main()
            """,
            "models/__init__.py": """
                import importlib, os
                REGISTRY = {}
                def register_model(name):
                    return lambda cls: REGISTRY.setdefault(name, cls)
                for file in os.listdir(os.path.dirname(__file__)):
                    importlib.import_module("models." + file[:-3])
            """,
            "models/lstm.py": """
                from . import register_model
                @register_model("lstm")
                class Lstm:
                    @staticmethod
                    def add_args(parser):
                        parser.add_argument("--hidden-size", type=int, default=64)
            """,
        },
    )
    assert list(settable(entry)) == ["arch", "hidden_size"]


def test_argument_without_a_name_is_reported(tmp_path: Path) -> None:
    code = "import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--' + sys.argv[1])\np.parse_args()\n"
    assert "made at run time" in scanned(tmp_path, {"train.py": code}).notes[0]


def test_click(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                import click
                def shared(function):
                    return click.option("--seed", default=0)(function)
                @click.command()
                @click.argument("data", type=click.Path())
                @click.option("-l", "--lr", "--learning-rate", "rate", type=float, default=0.1, help="Rate.")
                @click.option("--amp/--no-amp", default=True)
                @click.option("--debug", is_flag=True)
                @click.option("--opt", type=click.Choice(["sgd", "adam"]), default="sgd")
                @click.option("--dim", type=click.IntRange(1), multiple=True)
                @click.option("--out", required=True, type=click.Path())
                @shared
                def main(**options): ...
                if __name__ == "__main__":
                    main()
            """
        },
    )
    flags = settable(entry)
    assert entry.style == "click"
    assert list(flags) == ["data", "rate", "amp", "debug", "opt", "dim", "out", "seed"]
    assert facts(flags["rate"], "option", "aliases", "type", "help") == (
        "--lr",
        ("-l", "--learning-rate"),
        "float",
        "Rate.",
    )
    assert facts(flags["amp"], "option", "negative", "takes_value", "default") == ("--amp", "--no-amp", False, True)
    assert facts(flags["debug"], "default", "role") == (False, Role.QUICK)
    assert facts(flags["opt"], "choices", "type") == (("sgd", "adam"), "str")
    assert flags["dim"].type == "list[int]"
    assert facts(flags["seed"], "type", "role") == ("int", Role.SEED)


def test_click_groups_have_subcommands(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "cli.py": """
                import click
                @click.group()
                @click.option("--quiet", is_flag=True)
                def cli(quiet): ...
                @cli.command()
                @click.option("--lr", default=0.1)
                def train(lr): ...
                @cli.command("score")
                @click.option("--ckpt")
                def evaluate(ckpt): ...
                if __name__ == "__main__":
                    cli()
            """
        },
        "cli.py",
    )
    assert entry.commands == ("train", "score")
    assert {(flag.command, flag.name) for flag in entry.flags} == {("", "quiet"), ("train", "lr"), ("score", "ckpt")}


def test_typer(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                from enum import Enum
                from pathlib import Path
                from typing import Annotated, Literal, Optional
                import typer
                app = typer.Typer()
                class Opt(str, Enum):
                    SGD = "sgd"
                    adam = "adam"
                @app.command()
                def train(
                    data: Path,
                    lr: Annotated[float, typer.Option("--lr", "-l", help="Rate.")] = 0.1,
                    batch_size: int = typer.Option(32, help="Batch."),
                    out: str = typer.Option(...),
                    opt: Opt = Opt.adam,
                    mode: Literal["a", "b"] = "a",
                    amp: bool = False,
                    resume: Optional[Path] = None,
                ): ...
                if __name__ == "__main__":
                    app()
            """
        },
    )
    flags = settable(entry)
    assert (entry.style, entry.commands) == ("typer", ())
    assert facts(flags["data"], "set_by", "required", "type") == (SetBy.POSITIONAL, True, "path")
    assert facts(flags["lr"], "option", "aliases", "default", "help") == ("--lr", ("-l",), 0.1, "Rate.")
    assert facts(flags["batch_size"], "option", "default") == ("--batch-size", 32)
    assert flags["out"].required
    assert facts(flags["opt"], "option", "choices", "default") == ("--opt", ("sgd", "adam"), "adam")
    assert flags["mode"].choices == ("a", "b")
    assert facts(flags["amp"], "option", "negative", "takes_value") == ("--amp", "--no-amp", False)
    assert facts(flags["resume"], "type", "required") == ("path", False)


def test_tyro_and_fire_read_signatures(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path / "tyro",
        {
            "train.py": """
                from dataclasses import dataclass, field
                import tyro
                @dataclass
                class Optim:
                    learning_rate: float = 1e-3
                @dataclass
                class Config:
                    optim: Optim = field(default_factory=Optim)
                    batch_size: int = 8
                    use_amp: bool = False
                if __name__ == "__main__":
                    tyro.cli(Config)
            """
        },
    )
    flags = settable(entry)
    assert {name: flag.option for name, flag in flags.items()} == {
        "optim.learning_rate": "--optim.learning-rate", "batch_size": "--batch-size", "use_amp": "--use-amp",
    }  # fmt: skip
    assert flags["use_amp"].negative == "--no-use-amp"
    entry = scanned(
        tmp_path / "fire",
        {
            "train.py": "import fire\ndef main(lr=0.1, batch_size: int = 4, data=None): ...\nif __name__ == '__main__':\n    fire.Fire(main)\n"
        },
    )
    assert [(flag.option, flag.type, flag.default) for flag in entry.flags] == [
        ("--lr", "float", 0.1), ("--batch_size", "int", 4), ("--data", "str", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "hostile",
    ["'a' * 10 ** 12", "9 ** 9 ** 9", "-" * 30 + "1", "(" * 80 + "1" + ")" * 80, "1 << 10 ** 9", "1e308 * 1e308"],
)
def test_default_cannot_stall_or_blow_up_the_scan(tmp_path: Path, hostile: str) -> None:
    code = (
        f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', default={hostile})\np.parse_args()\n"
    )
    assert scanned(tmp_path, {"train.py": code}).flags[0].name == "lr"
