"""`sim`: simulated GPUs and a simulated Slurm, to rehearse on."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from labwright.cli.options import AsJson
from labwright.cli.screen import Screen
from labwright.domain.errors import Invalid
from labwright.sim.gpus import SimulatedGpus, run_with_gpus
from labwright.sim.slurm import SlurmSize, run_with_slurm

sim = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@sim.command("gpus", context_settings={"allow_interspersed_args": False})
def gpus(
    count: Annotated[int, typer.Argument(min=1, metavar="N", help="How many.")],
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="What is to see them.")],
) -> None:
    """Run a command that sees N simulated GPUs.

    For example: labwright sim gpus 4 -- bash, and there: labwright up -d

    The simulated driver is there as long as the command runs.
    """
    raise typer.Exit(run_with_gpus(count, command[1:] if command[0] == "--" else command))


@sim.command("slurm", context_settings={"allow_interspersed_args": False})
def slurm(
    nodes: Annotated[int, typer.Option(min=1, max=50, metavar="N", help="How many nodes.")] = 3,
    gpus: Annotated[int, typer.Option(min=0, max=16, metavar="N", help="How many GPUs each has.")] = 2,
    command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", help="What is to see it.")] = None,
) -> None:
    """A Slurm cluster on this machine, in a folder of its own.

    For example: labwright sim slurm -- bash, and there: labwright up -d

    Without a command it prints the variable to set, and stays up until Ctrl-C.
    """
    argv = command or []
    raise typer.Exit(run_with_slurm(SlurmSize(nodes=nodes, gpus=gpus), argv[1:] if argv[:1] == ["--"] else argv))


@sim.command("set")
def set_card(
    card: Annotated[int, typer.Argument(min=0, metavar="CARD", help="The card's index.")],
    memory_mb: Annotated[int | None, typer.Option(min=0, metavar="MB", help="Memory in use.")] = None,
    utilization: Annotated[
        int | None, typer.Option(min=0, max=100, metavar="PERCENT", help="How busy, in percent.")
    ] = None,
    process: Annotated[
        list[str] | None, typer.Option(metavar="PID:MB", help="A process on it; repeat for more, `none` for none.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change what one simulated card shows.

    Inside a shell of `labwright sim gpus`; servers and runs started there see it at once.
    """
    simulated = SimulatedGpus.from_environment(os.environ)
    processes = None if process is None else [_process(text) for text in process if text != "none"]
    simulated.set_card(card, memory_used_mb=memory_mb, utilization=utilization, processes=processes)
    _show(Screen(as_json=as_json), card, simulated)


def _process(text: str) -> tuple[int, int]:
    pid, _, megabytes = text.partition(":")
    if not (pid.isdigit() and megabytes.isdigit()):
        raise Invalid(f"--process {text!r} is not PID:MB.", hint="For example --process 4711:2000.")
    return int(pid), int(megabytes)


def _show(screen: Screen, index: int, simulated: SimulatedGpus) -> None:
    card = simulated.cards[index]
    if screen.as_json:
        facts = {"memory_used_mb": card.memory_used_mb, "utilization": card.utilization}
        screen.json({"index": index, **facts, "processes": [list(process) for process in card.processes]})
        return
    processes = ", ".join(f"{pid} ({megabytes} MB)" for pid, megabytes in card.processes) or "no process"
    screen.say(f"GPU {index}: {card.memory_used_mb} MB in use, {card.utilization}% busy, {processes}")
