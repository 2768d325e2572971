"""`export` and `import`: every point as a file, and runs that were logged without a server."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from labwright.cli.formatting import counted
from labwright.cli.options import AsJson, Project, RunRefs, connect
from labwright.cli.runs.view import run_line
from labwright.cli.screen import Screen, note
from labwright.client.follow import is_ended, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, LabwrightError, NotFound

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
    left_out: list[LabwrightError] = []
    lines = 0
    with _target(output) as file:
        for run_id in ids:
            try:
                lines += _export_run(client, run_id, form, key, file, with_run=len(ids) > 1, goes_on=lines > 0)
            except LabwrightError as error:
                if error.code != NotFound.code:
                    raise
                left_out.append(error)
        if len(left_out) == len(ids):
            raise left_out[0]
    if output is not None:
        note(f"{counted(lines - (form is Form.CSV), 'line')} in {output}")
    if left_out:
        words = " ".join(error.message for error in left_out)
        raise NotFound(f"Left out: {words}", hint="The other runs are exported.")


def _export_run(
    client: LabClient,
    run_id: str,
    form: Form,
    keys: list[str] | None,
    file: IO[bytes],
    *,
    with_run: bool,
    goes_on: bool,
) -> int:
    """Answers how many lines were written. `goes_on`: below lines that have their head already."""
    lines = client.export(run_id, form, keys, with_run=with_run)
    count = 0
    for line in islice(lines, 1 if goes_on and form is Form.CSV else 0, None):
        file.write(line)
        count += 1
    return count


@contextmanager
def _target(output: Path | None) -> Iterator[IO[bytes]]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with _in_place(output) if _is_no_plain_file(output) else _whole(output) as file:
            yield file
    except OSError as error:
        raise Invalid(f"{output} cannot be written: {error.strerror}.") from error


def _is_no_plain_file(output: Path) -> bool:
    """A pipe, a device, or a name for a descriptor that somebody else has opened."""
    folder = os.path.realpath(output.parent)
    names_descriptor = output.is_symlink() and (folder == "/dev" or folder.startswith("/proc/"))
    return names_descriptor or (output.exists() and not output.is_file())


@contextmanager
def _in_place(output: Path) -> Iterator[IO[bytes]]:
    """Added to what is there: standard output may be a file that has something in it."""
    with open(os.open(output, os.O_WRONLY | os.O_APPEND), "wb") as file:
        yield file


@contextmanager
def _whole(output: Path) -> Iterator[IO[bytes]]:
    """A file is there whole or not at all; what a link points to is written, and the link stays."""
    target = Path(os.path.realpath(output))
    if target.is_symlink():  # links in a circle lead to no file
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    aside = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        with open(aside, "wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
        aside.replace(target)
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
