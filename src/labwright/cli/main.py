"""`labwright`: the list of commands. Each is loaded when it is called, so that help and start-up stay quick."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from labwright.cli.screen import drop_output, make_streams_patient, show_error
from labwright.domain.errors import LabwrightError, ServerUnreachable
from labwright.files import is_refusal
from labwright.version import __version__

NO_SERVER = 3
_HERE = "labwright.cli"
_UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it

# name: (module, attribute, help)
_Entries = dict[str, tuple[str, str, str]]
SECTIONS: dict[str, _Entries] = {
    "Server": {
        "up": ("server.commands", "up", "Start this project's server."),
        "url": ("server.commands", "url", "Print the address of this project's server."),
        "down": ("server.commands", "down", "End this project's server; its runs go on."),
        "doctor": ("server.doctor", "doctor", "Check what Labwright needs, and say how to mend it."),
    },
    "Runs": {
        "run": ("runs.submit", "run", "Run a command."),
        "ps": ("runs.commands", "ps", "List runs: the active ones and the newest."),
        "show": ("runs.commands", "show", "Show one run in full."),
        "logs": ("runs.logs", "logs", "Show a run's output."),
        "wait": ("runs.commands", "wait", "Wait until runs have ended; exit with the run's exit code."),
        "attach": ("runs.attach", "attach", "Watch a run in tmux and type into it."),
        "start": ("runs.commands", "start", "Start a run that was made with --no-start."),
        "stop": ("runs.commands", "stop", "Stop runs and everything they started."),
        "rerun": ("runs.submit", "rerun", "Run the same again, as a new run."),
        "diff": ("runs.commands", "diff", "Show what changed in the code since a run was submitted."),
        "archive": ("runs.commands", "archive", "Take ended runs out of the usual lists."),
        "unarchive": ("runs.commands", "unarchive", "Put archived runs back."),
        "delete": ("runs.commands", "delete", "Delete ended runs with all their files."),
    },
    "Metrics": {
        "metrics": ("metrics.show", "metrics", "Show a run's metrics, with curves."),
        "compare": ("metrics.compare", "compare", "Compare one metric over several runs."),
        "export": ("metrics.export", "export", "Write every point of runs as CSV or JSON lines."),
        "import": ("metrics.export", "import_runs", "Take in runs that were logged without a server."),
    },
    "Sweeps": {
        "sweeps": ("sweeps.commands", "sweeps", "List sweeps."),
        "sweep": ("sweeps.commands", "sweep", "Run many configurations: from a file, or as a sweep that runs join."),
    },
    "Plans": {
        "plan": ("plans.commands", "plan", "Plan an experiment from a goal; review, execute and read plans."),
    },
    "Wild Mode": {
        "wild": ("wild", "wild", "Experiment after experiment until a goal is met; steer, pause, stop and read loops."),
    },
    "Conversation": {
        "chat": ("chat.commands", "chat", "Talk: ask, launch, compare; with rules alone where no model is chosen."),
        "sessions": ("chat.sessions", "sessions", "List conversations, show or stop one."),
        "approvals": ("chat.approvals", "approvals", "What an agent asks you for, and your answer."),
        "memories": ("chat.memories", "memories", "What every conversation is told."),
    },
    "Assistants": {
        "skills": ("skills", "skills", "What models are told: list, read, render and install it."),
        "mcp": ("mcp", "mcp", "Serve this project to a coding assistant, over MCP."),
    },
    "Machine": {
        "gpu": ("machine", "gpu", "Show the GPUs: who holds them, how busy they are."),
        "cluster": ("machine", "cluster", "Show what there is to run on."),
        "models": ("models", "models", "Show which language models answer, and what they took."),
        "sim": ("sim", "sim", "Simulated GPUs, or a Slurm, to rehearse on a machine without."),
    },
    "News": {
        "alerts": ("alerts", "alerts", "List open alerts, or answer one."),
        "notifications": ("notifications", "notifications", "Show where news goes, and what became of it."),
        "events": ("events", "events", "Show what happened, and who did it."),
    },
    "Upkeep": {
        "gc": ("server.upkeep", "gc", "Free disk space by the retention settings."),
        "backup": ("server.upkeep", "backup", "Write a backup now: of the database, or of the whole history."),
        "restore": ("server.upkeep", "restore", "Bring a whole history back from such a file."),
        "db": ("server.upkeep", "db", "The database: rebuild it from the run folders."),
        "token": ("server.upkeep", "token", "Print a token for a viewer or an agent."),
    },
}
COMMANDS: _Entries = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Commands(TyperGroup):
    """Knows every command by name and help, and loads one only to run it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # for "did you mean"

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(13), text) for name, (_, _, text) in entries.items()])


def load(name: str) -> Any:
    """A command as typer makes it from a function, or a group of them."""
    module, attribute, text = COMMANDS[name]
    found = getattr(import_module(f"{_HERE}.{module}"), attribute)
    if isinstance(found, typer.Typer):
        callback = found.registered_callback
        more = getdoc(callback.callback) if callback and callback.callback else ""
        found.info.help = f"{text}\n\n{more or ''}"
        return typer.main.get_command(found)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    # Options end where a run's command begins, with or without `--`.
    settings = {"allow_interspersed_args": name != "run"}
    alone.command(name, help=f"{text}\n\n{getdoc(found) or ''}", context_settings=settings)(found)
    return typer.main.get_command(alone)


app = typer.Typer(cls=Commands, rich_markup_mode=None, no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"labwright {__version__}")
        raise typer.Exit


@app.callback(epilog="First steps: labwright up -d, then labwright run -- python train.py")
def labwright(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run experiments from a project folder, on this machine's GPUs, and never lose one."""


def main() -> None:
    as_json = _wants_json(sys.argv[1:])
    make_streams_patient()
    try:
        # Standing alone it would tell wrong usage itself, in words only; else it answers the exit code.
        code = typer.main.get_command(app)(prog_name="labwright", standalone_mode=not as_json)
    except LabwrightError as error:
        show_error(error.code, error.message, error.hint, as_json=as_json)
        code = NO_SERVER if isinstance(error, ServerUnreachable) else 1
    except OSError as error:
        if not is_refusal(error):
            raise
        drop_output()
        show_error("storage", f"{error.filename or 'Standard output'}: {error.strerror}.", "", as_json=as_json)
        code = 1
    except typer.Abort:
        code = 1
    except _UsageError as error:
        hint = f"See {error.ctx.command_path if error.ctx else 'labwright'} --help."
        show_error("usage", error.format_message(), hint, as_json=as_json)
        code = error.exit_code
    sys.exit(code)


def _wants_json(arguments: list[str]) -> bool:
    """Only before `--`: what comes after is somebody else's."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own
