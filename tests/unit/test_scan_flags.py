"""Flags are read as the script takes them, in every style people write them."""

# ruff: noqa: E501 - small projects, written as their authors would
from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from labwright.planning.scan import EntryPoint, Flag, Role, SetBy, scan_project


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def scanned(folder: Path, files: dict[str, str], path: str = "train.py") -> EntryPoint:
    entry = scan_project(write(folder, files), environ={"PATH": ""}).entry_point(path)
    assert entry is not None
    return entry


def settable(entry: EntryPoint) -> dict[str, Flag]:
    return {flag.name: flag for flag in entry.flags if flag.is_settable}


def facts(flag: Flag | None, *names: str) -> tuple[Any, ...]:
    assert flag is not None
    return tuple(getattr(flag, name) for name in names)


def test_argparse_with_everything_it_has(tmp_path: Path) -> None:
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


def test_arguments_that_classes_register_are_found_behind_a_registry(tmp_path: Path) -> None:
    """As in fairseq: which class adds its arguments shows only at run time."""
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


def test_an_argument_without_a_name_is_said(tmp_path: Path) -> None:
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


def test_hydra_with_groups_as_in_the_lightning_template(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "src/train.py": """
                import hydra
                @hydra.main(version_base="1.3", config_path="../configs", config_name="train.yaml")
                def main(cfg):
                    ...
                if __name__ == "__main__":
                    main()
            """,
            "configs/train.yaml": """
                defaults:
                  - _self_
                  - data: mnist
                  - model: mlp
                  - optional local: default
                  - experiment: null
                  - override hydra/job_logging: colorlog
                seed: null
                task_name: ???
                name: ${task_name}_x
                trainer:
                  max_epochs: 10
            """,
            "configs/data/mnist.yaml": "batch_size: 128\n",
            "configs/data/cifar.yaml": "batch_size: 64\n",
            "configs/model/mlp.yaml": "_target_: src.Mlp\nlr: 1e-3\nnet:\n  hidden: [64, 32]\n",
            "configs/experiment/big.yaml": "# @package _global_\nseed: 3\n",
        },
        "src/train.py",
    )
    flags = settable(entry)
    assert entry.style == "hydra"
    assert facts(flags["data"], "option", "choices", "default") == ("data=", ("cifar", "mnist"), "mnist")
    assert facts(flags["model.lr"], "option", "set_by", "type", "default") == (
        "model.lr=",
        SetBy.OVERRIDE,
        "float",
        0.001,
    )
    assert facts(flags["data.batch_size"], "default", "where") == (128, "configs/data/mnist.yaml")
    assert facts(flags["trainer.max_epochs"], "role") == (Role.EPOCHS,)
    assert flags["experiment"].choices == ("big",)
    assert flags["task_name"].required
    assert flags["name"].note == "follows another value"
    assert flags["model.net.hidden"].default == [64, 32]
    assert not any("hydra" in name for name in flags)


def test_hydra_structured_config(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                from dataclasses import dataclass
                import hydra
                from hydra.core.config_store import ConfigStore
                @dataclass
                class Config:
                    lr: float = 0.1
                ConfigStore.instance().store(name="base", node=Config)
                @hydra.main(version_base=None, config_name="base")
                def main(cfg): ...
                if __name__ == "__main__":
                    main()
            """
        },
    )
    assert [(flag.option, flag.default) for flag in entry.flags] == [("lr=", 0.1)]


def test_yaml_without_overrides_is_not_settable(tmp_path: Path) -> None:
    code = (
        "import yaml\ncfg = yaml.safe_load(open('config.yaml'))\nfor step in range(cfg['steps']): print('loss', 1.0)\n"
    )
    entry = scanned(tmp_path, {"train.py": code, "config.yaml": "steps: 3\noptim: {lr: 0.1}\n"})
    assert {flag.name: flag.set_by for flag in entry.flags} == {"steps": SetBy.EDIT, "optim.lr": SetBy.EDIT}


def test_hugging_face_parser_as_in_run_glue(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "run_glue.py": '''
                from dataclasses import dataclass, field
                from typing import Optional
                import evaluate
                from transformers import HfArgumentParser, Trainer, TrainingArguments
                TASKS = {"cola": 1, "mnli": 2}
                @dataclass
                class DataTrainingArguments:
                    """Data."""
                    task_name: Optional[str] = field(default=None, metadata={"help": "The task: " + ", ".join(TASKS.keys())})
                    max_seq_length: int = field(default=128, metadata={"help": "Longest input."})
                    overwrite_cache: bool = field(default=False)
                    pad: bool = field(default=True)
                @dataclass
                class ModelArguments:
                    model_name_or_path: str = field(metadata={"help": "Model."})
                def main():
                    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
                    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
                    metric = evaluate.load("accuracy")
                    def compute_metrics(p):
                        result = metric.compute(predictions=p.predictions)
                        result["combined_score"] = 1.0
                        return result
                    trainer = Trainer(args=training_args, compute_metrics=compute_metrics)
                    trainer.train()
                    metrics = trainer.evaluate()
                    trainer.log_metrics("eval", metrics)
                if __name__ == "__main__":
                    main()
            '''
        },
        "run_glue.py",
    )
    flags = settable(entry)
    assert entry.style == "hf"
    assert flags["model_name_or_path"].required
    assert facts(flags["max_seq_length"], "option", "default", "help") == ("--max_seq_length", 128, "Longest input.")
    assert flags["pad"].negative == "--no_pad"
    assert facts(flags["learning_rate"], "default", "where") == (5e-5, "transformers.TrainingArguments")
    assert facts(flags["max_steps"], "role") == (Role.STEPS,)
    assert [metric.name for metric in entry.metrics] == ["eval_loss", "eval_combined_score", "eval_accuracy"]


def test_lightning_command_line(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "main.py": """
                from lightning.pytorch.cli import LightningCLI
                from net import Net, Data
                def cli_main():
                    LightningCLI(Net, Data)
                if __name__ == "__main__":
                    cli_main()
            """,
            "net.py": """
                import lightning as L
                class Net(L.LightningModule):
                    def __init__(self, hidden: int = 32, lr: float = 1e-3):
                        super().__init__()
                    def training_step(self, batch, index):
                        self.log("train/loss", 1.0, prog_bar=True)
                    def validation_step(self, batch, index):
                        for name in ("loss", "acc"):
                            self.log(f"val/{name}", 1.0, sync_dist=True)
                class Data(L.LightningDataModule):
                    def __init__(self, batch_size: int = 8): ...
            """,
        },
        "main.py",
    )
    flags = settable(entry)
    assert (entry.style, entry.commands[0]) == ("lightning", "fit")
    assert facts(flags["model.lr"], "option", "default") == ("--model.lr", 0.001)
    assert flags["data.batch_size"].type == "int"
    assert flags["trainer.fast_dev_run"].role is Role.QUICK
    assert [(metric.name, metric.direction) for metric in entry.metrics] == [
        ("train/loss", "minimize"), ("val/loss", "minimize"), ("val/acc", "maximize"),
    ]  # fmt: skip


def test_nanogpt_with_its_configurator(tmp_path: Path) -> None:
    entry = scanned(
        tmp_path,
        {
            "train.py": """
                import os, torch
                out_dir = 'out'
                learning_rate = 6e-4
                max_iters = 600000
                dropout = 0.0
                compile = True
                device = 'cuda'
                config_keys = [k for k, v in globals().items() if not k.startswith('_')]
                exec(open('configurator.py').read())
                tokens = 4 * 8
                model = None
                for iter_num in range(max_iters):
                    loss = model(); loss.backward()
                    print(f"iter {iter_num}: loss {loss:.4f}, time {1*1000:.2f}ms, mfu {1.0:.2f}%")
                    print(f"step {iter_num}: train loss {loss:.4f}, val loss {loss:.4f}")
            """,
            "configurator.py": "import sys\nfor arg in sys.argv[1:]:\n    key, val = arg.split('=')\n",
        },
    )
    flags = settable(entry)
    assert entry.style == "configurator"
    assert facts(flags["learning_rate"], "option", "set_by", "default") == ("--learning_rate=", SetBy.JOINED, 6e-4)
    assert [flag.name for flag in entry.flags_for(Role.STEPS)] == ["max_iters"]
    assert [metric.name for metric in entry.metrics] == ["loss", "train_loss", "val_loss"]


def test_bare_globals_are_told_as_not_settable(tmp_path: Path) -> None:
    code = "import os\nLR = 0.1\nSTEPS = int(os.environ.get('STEPS', '5'))\nfor i in range(STEPS):\n    print('loss', LR)\n"
    entry = scanned(tmp_path, {"train.py": code})
    assert {flag.name: (flag.set_by, flag.option) for flag in entry.flags} == {
        "steps": (SetBy.ENVIRONMENT, "STEPS="), "LR": (SetBy.EDIT, ""),
    }  # fmt: skip


def test_absl(tmp_path: Path) -> None:
    code = """
        from absl import app, flags
        flags.DEFINE_float("lr", 0.1, "Rate.")
        flags.DEFINE_enum("opt", "sgd", ["sgd", "adam"], "Optimizer.")
        flags.DEFINE_boolean("amp", False, "Mixed.")
        def main(argv): ...
        if __name__ == "__main__":
            app.run(main)
    """
    flags = settable(scanned(tmp_path, {"train.py": code}))
    assert facts(flags["lr"], "option", "type", "default", "help") == ("--lr", "float", 0.1, "Rate.")
    assert flags["opt"].choices == ("sgd", "adam")
    assert flags["amp"].negative == "--noamp"


@pytest.mark.parametrize(
    "hostile",
    ["'a' * 10 ** 12", "9 ** 9 ** 9", "-" * 30 + "1", "(" * 80 + "1" + ")" * 80, "1 << 10 ** 9", "1e308 * 1e308"],
)
def test_a_default_cannot_stall_or_blow_up_the_scan(tmp_path: Path, hostile: str) -> None:
    code = (
        f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', default={hostile})\np.parse_args()\n"
    )
    assert scanned(tmp_path, {"train.py": code}).flags[0].name == "lr"
