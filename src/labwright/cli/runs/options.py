"""What can be said of a run on the command line, each word with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Command = Annotated[list[str], typer.Argument(metavar="COMMAND", help="What to run.", show_default=False)]
Workdir = Annotated[Path | None, typer.Option(metavar="DIR", help="Where to run it. Default: here.")]
Env = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A variable for it; repeat for more.")]
Tty = Annotated[bool, typer.Option("--tty", help="Give it a terminal, for debuggers.")]
Snapshot = Annotated[bool, typer.Option("--snapshot", help="Run the code as it is now, edited or not later.")]

Name = Annotated[str | None, typer.Option(metavar="NAME", help="Default: the command.")]
Sweep = Annotated[str | None, typer.Option(metavar="SWEEP", help="The sweep it belongs to, by id or name.")]
Tags = Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeat for more.")]
Params = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A parameter, for tables and plots.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="The seed, for tables and plots.")]

After = Annotated[list[str] | None, typer.Option(metavar="RUN", help="Only after this run has finished.")]
Priority = Annotated[int, typer.Option(metavar="N", help="Higher goes first.")]
TimeLimit = Annotated[str | None, typer.Option(metavar="TIME", help="Stop it after e.g. 2h, 90m, 30s.")]
NoStart = Annotated[bool, typer.Option("--no-start", help="Only make it; labwright start begins it.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow the output; exit with the run's exit code.")]

Gpus = Annotated[int | None, typer.Option(min=0, metavar="N", help="How many GPUs; 0 hides them.")]
Gpuwrap = Annotated[bool | None, typer.Option(help="Wait for free GPUs and retry on contention.")]
Retries = Annotated[int | None, typer.Option(min=-1, metavar="N", help="gpuwrap: tries; -1 is as long as it takes.")]
RetryDelay = Annotated[str | None, typer.Option(metavar="TIME", help="gpuwrap: time between tries.")]
Cpus = Annotated[int | None, typer.Option(min=1, metavar="N", help="Slurm: cores for it.")]
MemoryMb = Annotated[int | None, typer.Option(min=1, metavar="MB", help="Slurm: memory on each node.")]
Nodes = Annotated[int | None, typer.Option(min=1, metavar="N", help="Slurm: how many nodes.")]
SlurmOptions = Annotated[
    list[str] | None, typer.Option(metavar="OPTION", help="Slurm: an option of sbatch, e.g. --slurm=-pdebug.")
]
