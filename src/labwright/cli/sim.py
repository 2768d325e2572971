"""`sim`: simulated GPUs and a simulated Slurm, for trying things out."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from labwright.cli.command import AsJson, group
from labwright.cli.screen import Screen
from labwright.domain.errors import Invalid
from labwright.sim.gpus import SimulatedGpus, run_with_gpus
from labwright.sim.slurm import SlurmSize, run_with_slurm

sim = group(no_args_is_help=True)


@sim.command("gpus", context_settings={"allow_interspersed_args": False})
def gpus(
    count: Annotated[int, typer.Argument(min=1, metavar="N", help="Number of GPUs.")],
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command to run.")],
) -> None:
    """Run a command that sees N simulated GPUs.

    For example: labwright sim gpus 4 -- bash, then in that shell: labwright up -d

    The GPUs exist while the command runs.
    """
    raise typer.Exit(run_with_gpus(count, command[1:] if command[0] == "--" else command))


@sim.command("slurm", context_settings={"allow_interspersed_args": False})
def slurm(
    nodes: Annotated[int, typer.Option(min=1, max=50, metavar="N", help="Number of nodes.")] = 3,
    gpus: Annotated[int, typer.Option(min=0, max=16, metavar="N", help="GPUs per node.")] = 2,
    command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", help="The command to run.")] = None,
) -> None:
    """Run a command with a simulated Slurm cluster on this machine.

    For example: labwright sim slurm -- bash, then in that shell: labwright up -d

    Without a command it prints the variable to set, and runs until Ctrl-C.
    """
    argv = command or []
    raise typer.Exit(run_with_slurm(SlurmSize(nodes=nodes, gpus=gpus), argv[1:] if argv[:1] == ["--"] else argv))


@sim.command("set")
def set_card(
    card: Annotated[int, typer.Argument(min=0, metavar="CARD", help="The card's index.")],
    memory_mb: Annotated[int | None, typer.Option(min=0, metavar="MB", help="Memory in use.")] = None,
    utilization: Annotated[
        int | None, typer.Option(min=0, max=100, metavar="PERCENT", help="Utilization in percent.")
    ] = None,
    process: Annotated[
        list[str] | None,
        typer.Option(metavar="PID:MB", help="A process on the card. Can be repeated. `none` removes all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change one simulated card.

    Use it in a shell of `labwright sim gpus`. Servers and runs started there see the change at once.
    """
    simulated = SimulatedGpus.from_environment(os.environ)
    processes = None if process is None else [_process(text) for text in process if text != "none"]
    simulated.set_card(card, memory_used_mb=memory_mb, utilization=utilization, processes=processes)
    changed = simulated.cards[card]
    facts = {
        "index": card,
        "memory_used_mb": changed.memory_used_mb,
        "utilization": changed.utilization,
        "processes": [list(process) for process in changed.processes],
    }
    screen = Screen(as_json=as_json)
    on_card = ", ".join(f"{pid} ({megabytes} MB)" for pid, megabytes in changed.processes) or "no process"
    text = f"GPU {card}: {changed.memory_used_mb} MB in use, {changed.utilization}% busy, {on_card}"
    screen.result(facts, lambda _: screen.print(text))


def _process(text: str) -> tuple[int, int]:
    pid, _, megabytes = text.partition(":")
    if not (pid.isdigit() and megabytes.isdigit()):
        raise Invalid(f"--process {text!r} is not PID:MB.", hint="For example --process 4711:2000.")
    return int(pid), int(megabytes)
