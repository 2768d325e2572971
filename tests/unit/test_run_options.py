"""The parameters of a run that was made by hand: the options of its command."""

from __future__ import annotations

import pytest

from labwright.domain.command_line import options_of

OPTIONS = {
    "python train.py --lr 0.1 --amp --seed=3": {"lr": 0.1, "amp": True, "seed": 3},
    "source .venv/bin/activate && python -u train.py --lr 1e-3 -b 32": {"lr": 0.001, "b": 32},
    "torchrun --nproc_per_node=2 train.py --weight-decay 0": {"weight_decay": 0},
    "python train.py config/small.py lr=0.1 device=cpu": {"lr": 0.1, "device": "cpu"},
    "python -m lab.train --name x model.width=64": {"name": "x", "model.width": 64},
    "LR=3 python train.py --offset -0.5 > out.txt --x 1": {"offset": -0.5},
    "python train.py --out-dir runs/a --run_name a --save_path m.pt --lr 1": {"lr": 1},
    "python a.py --lr 1 --n 2 && python b.py --lr 2 --n 2": {"lr": 1, "lr_2": 2, "n": 2},
    "python train.py": {},
    "true": {},
    "echo --lr 3": {},
    "python train.py --text 'it": {"text": "'it"},
}


@pytest.mark.parametrize("command", OPTIONS)
def test_options_of_the_script_are_the_parameters(command: str) -> None:
    assert options_of(command) == OPTIONS[command]
