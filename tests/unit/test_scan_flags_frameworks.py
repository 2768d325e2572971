"""Flags of scripts whose framework reads them: Hydra, YAML, Hugging Face, Lightning, nanoGPT, absl."""

# ruff: noqa: E501 - small projects, written as their authors would
from __future__ import annotations

from pathlib import Path

from labwright.planning.scan import Role, SetBy
from tests.support.scanning import facts, scanned, settable


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


def test_bare_globals_are_reported_as_not_settable(tmp_path: Path) -> None:
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
