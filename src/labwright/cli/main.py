"""`labwright`: the list of commands. Each is imported when it is called, so that start-up and help stay fast."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from labwright.cli.screen import discard_output, make_streams_tolerant, show_error
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
        "down": ("server.commands", "down", "Stop this project's server. Its runs continue."),
        "doctor": ("server.doctor", "doctor", "Check what Labwright needs, and show how to fix problems."),
    },
    "Runs": {
        "run": ("runs.submit", "run", "Run a command."),
        "ps": ("runs.commands", "ps", "List active and recent runs."),
        "show": ("runs.commands", "show", "Show a run in full."),
        "logs": ("runs.logs", "logs", "Show a run's output."),
        "wait": ("runs.commands", "wait", "Wait until runs have ended, and exit with the run's exit code."),
        "attach": ("runs.attach", "attach", "Open a run in tmux, to watch it and type into it."),
        "start": ("runs.commands", "start", "Start a run that was created with --no-start."),
        "stop": ("runs.commands", "stop", "Stop runs and all their processes."),
        "rerun": ("runs.submit", "rerun", "Run the same command again as a new run."),
        "diff": ("runs.commands", "diff", "Show code changes since a run was submitted."),
        "archive": ("runs.commands", "archive", "Remove ended runs from the default lists."),
        "unarchive": ("runs.commands", "unarchive", "Restore archived runs to the default lists."),
        "delete": ("runs.commands", "delete", "Delete ended runs with all their files."),
    },
    "Metrics": {
        "metrics": ("metrics.show", "metrics", "Show a run's metrics, with curves."),
        "compare": ("metrics.compare", "compare", "Compare a metric across runs."),
        "export": ("metrics.export", "export", "Export all metric values as CSV or JSON lines."),
        "import": ("metrics.export", "import_runs", "Import runs that were logged without a server."),
    },
    "Sweeps": {
        "sweeps": ("sweeps.commands", "sweeps", "List sweeps."),
        "sweep": ("sweeps.commands", "sweep", "Run many configurations, and show and control sweeps."),
    },
    "Plans": {
        "plan": ("plans.commands", "plan", "Plan an experiment from a goal; review and execute plans."),
    },
    "Wild Mode": {
        "wild": ("wild", "wild", "Run experiments until a goal is reached; steer and stop loops."),
    },
    "Chat": {
        "chat": ("chat.commands", "chat", "Chat with the agent. Without a model, fixed rules answer."),
        "sessions": ("chat.sessions", "sessions", "List, show, stop and delete conversations."),
        "approvals": ("chat.sessions", "approvals", "List and answer approval requests of agents."),
        "memories": ("chat.sessions", "memories", "List and change facts that every conversation knows."),
    },
    "Assistants": {
        "skills": ("skills", "skills", "List, show, render and install instructions for models."),
        "mcp": ("mcp", "mcp", "Serve this project to a coding assistant over MCP."),
    },
    "Machine": {
        "gpu": ("machine", "gpu", "Show the GPUs, who holds them, and their utilization."),
        "cluster": ("machine", "cluster", "Show the machine or cluster that runs use."),
        "models": ("machine", "models", "Show the language models and their costs."),
        "sim": ("sim", "sim", "Simulate GPUs or a Slurm cluster."),
    },
    "Notifications": {
        "alerts": ("alerts", "alerts", "List, show and answer alerts."),
        "notifications": ("notifications", "notifications", "Show notification channels and deliveries."),
        "events": ("events", "events", "Show the event log."),
    },
    "Maintenance": {
        "gc": ("server.upkeep", "gc", "Free disk space according to the retention settings."),
        "backup": ("server.upkeep", "backup", "Back up the database or the whole history."),
        "restore": ("server.upkeep", "restore", "Restore a whole history from a backup file."),
        "db": ("server.upkeep", "db", "Rebuild the database from the run folders."),
        "token": ("server.upkeep", "token", "Print a token for a viewer or an agent."),
    },
}
COMMANDS: _Entries = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Commands(TyperGroup):
    """Lists every command with its help, and imports one only to run it."""

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
    """Import a command or a group of commands."""
    module, attribute, text = COMMANDS[name]
    found = getattr(import_module(f"{_HERE}.{module}"), attribute)
    if isinstance(found, typer.Typer):
        callback = found.registered_callback
        more = getdoc(callback.callback) if callback and callback.callback else ""
        found.info.help = f"{text}\n\n{more or ''}"
        return typer.main.get_command(found)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    # The options of `run` end where its command starts, with or without `--`.
    settings = {"allow_interspersed_args": name != "run"}
    alone.command(name, help=f"{text}\n\n{getdoc(found) or ''}", context_settings=settings)(found)
    return typer.main.get_command(alone)


app = typer.Typer(cls=Commands, rich_markup_mode=None, no_args_is_help=True)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"labwright {__version__}")
        raise typer.Exit


@app.callback(epilog="First steps: labwright up -d, then labwright run -- python train.py")
def labwright(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run and track machine learning experiments from a project folder."""


def main() -> None:
    as_json = _wants_json(sys.argv[1:])
    make_streams_tolerant()
    try:
        # In standalone mode Typer prints usage errors itself, but not as JSON; otherwise it returns the exit code.
        code = typer.main.get_command(app)(prog_name="labwright", standalone_mode=not as_json)
    except LabwrightError as error:
        show_error(error.code, error.message, error.hint, as_json=as_json)
        code = NO_SERVER if isinstance(error, ServerUnreachable) else 1
    except OSError as error:
        if not is_refusal(error):
            raise
        discard_output()
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
    """Return whether --json is given before `--`; arguments after it belong to another command."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own
