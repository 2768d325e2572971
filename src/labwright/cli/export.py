"""`export` and `import`: every point as a file, and runs that were logged without a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from labwright.cli.options import AsJson, Project, RunRefs, connect
from labwright.cli.screen import Screen, note
from labwright.cli.show import run_line
from labwright.cli.words import counted
from labwright.client.follow import is_ended, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, NotFound

Json = dict[str, Any]
OFFLINE = ".labwright-offline"
_IMPORT_SECONDS = 60.0


class Form(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"


def export(
    runs: RunRefs,
    form: Annotated[Form, typer.Option("--format", help="The form of the lines.")] = Form.CSV,
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="KEY", help="Only this metric; repeat for more.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Into this file.")] = None,
    project: Project = None,
) -> None:
    """Key, step, time, value, source, attempt; with several runs the run's id before them."""
    client = connect(project)
    ids = list(dict.fromkeys(run["id"] for run in map(client.run, runs)))
    lines = 0
    with _target(output) as file:
        for number, run_id in enumerate(ids):
            for index, line in enumerate(client.export(run_id, form, key, with_run=len(ids) > 1)):
                if index or number == 0 or form is Form.JSONL:
                    file.write(line)
                    lines += 1
    if output is not None:
        note(f"{counted(lines - (form is Form.CSV), 'line')} in {output}")


@contextmanager
def _target(output: Path | None) -> Iterator[IO[bytes]]:
    """A file is there whole or not at all."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    aside = output.with_name(f"{output.name}.{os.getpid()}.new")
    try:
        with open(aside, "wb") as file:
            yield file
        aside.replace(output)
    except OSError as error:
        raise Invalid(f"{output} cannot be written: {error.strerror}.") from error
    finally:
        aside.unlink(missing_ok=True)


def import_runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help=f"Folders of runs, or of such folders. Default: {OFFLINE} here."),
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """What a script logged while no server was there. A folder that is here already is not taken in twice."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = [run for folder in folders or [_default(client)] for run in _folders(folder)]
    taken = []
    for folder in found:
        run, is_new = client.import_run(str(folder), outside=bool(folders))
        if not is_new and not as_json:
            note(f"{folder} is here already.")
        taken.append(run)
    ended = _ended(client, taken)
    if as_json:
        screen.json(ended)
        return
    for run in ended:
        run_line(screen, run)
    screen.next(f"Its numbers: labwright metrics {ended[-1]['id']}")


def _default(client: LabClient) -> Path:
    here = Path(OFFLINE)
    return here if here.is_dir() else client.paths.project / OFFLINE


def _folders(folder: Path) -> list[Path]:
    folder = folder.absolute()
    if (folder / "run.json").exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/run.json")) if folder.is_dir() else []
    if not found:
        raise NotFound(f"There is no run to import in {folder}.", hint=f"Name a folder below {OFFLINE}.")
    return found


def _ended(client: LabClient, taken: list[Json]) -> list[Json]:
    """A run is shown with its end, once its numbers have been read."""
    going = [run["id"] for run in taken if not is_ended(run)]
    later = {run["id"]: run for run in wait_for_ends(client, going, note, _IMPORT_SECONDS)} if going else {}
    return [later.get(run["id"], run) for run in taken]
