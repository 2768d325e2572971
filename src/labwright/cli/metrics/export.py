"""`export` and `import`: write all points to a file, and import runs that were logged without a server."""

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

from labwright.cli.command import Project, project_folder, with_client
from labwright.cli.formatting import plural
from labwright.cli.references import RunRefs, runs_of
from labwright.cli.runs.view import run_line
from labwright.cli.screen import Screen, note
from labwright.client.follow import is_ended, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, LabwrightError, NotFound

Json = dict[str, Any]
OFFLINE = ".labwright-offline"
_IMPORT_SECONDS = 60.0


class ExportFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"


def export(
    runs: RunRefs,
    form: Annotated[ExportFormat, typer.Option("--format", help="The format.")] = ExportFormat.CSV,
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="KEY", help="Export only this metric. Can be repeated.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file.")] = None,
    project: Project = None,
) -> None:
    """Columns: key, step, time, value, source, attempt. With several runs, the run's id comes first."""
    client = LabClient(project_folder(project))
    ids = [run["id"] for run in runs_of(client, runs)]
    left_out: list[LabwrightError] = []
    lines = 0
    with _target(output) as file:
        for run_id in ids:
            try:
                lines += _export_run(client, run_id, form, key, file, with_run=len(ids) > 1, has_header=lines > 0)
            except LabwrightError as error:
                if error.code != NotFound.code:
                    raise
                left_out.append(error)
        if len(left_out) == len(ids):
            raise left_out[0]
    if output is not None:
        note(f"{plural(lines - (form is ExportFormat.CSV), 'line')} written to {output}")
    if left_out:
        reasons = " ".join(error.message for error in left_out)
        raise NotFound(f"Some runs were not exported. {reasons}", hint="The other runs are exported.")


def _export_run(
    client: LabClient,
    run_id: str,
    form: ExportFormat,
    keys: list[str] | None,
    file: IO[bytes],
    *,
    with_run: bool,
    has_header: bool,
) -> int:
    """Write one run and return the number of lines. `has_header` says that the CSV header is written already."""
    lines = client.export(run_id, form, keys, with_run=with_run)
    count = 0
    for line in islice(lines, 1 if has_header and form is ExportFormat.CSV else 0, None):
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
        with _append_to(output) if _is_special(output) else _replace_file(output) as file:
            yield file
    except OSError as error:
        raise Invalid(f"{output} cannot be written: {error.strerror}.") from error


def _is_special(output: Path) -> bool:
    """Return whether the path is a pipe, a device, or a link to an open descriptor."""
    folder = os.path.realpath(output.parent)
    names_descriptor = output.is_symlink() and (folder == "/dev" or folder.startswith("/proc/"))
    return names_descriptor or (output.exists() and not output.is_file())


@contextmanager
def _append_to(output: Path) -> Iterator[IO[bytes]]:
    """Append: the path may be standard output, redirected to a file with contents."""
    with open(os.open(output, os.O_WRONLY | os.O_APPEND), "wb") as file:
        yield file


@contextmanager
def _replace_file(output: Path) -> Iterator[IO[bytes]]:
    """Write the file completely or not at all. A link stays a link; its target is written."""
    target = Path(os.path.realpath(output))
    if target.is_symlink():  # a loop of links
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


@with_client
def import_runs(
    screen: Screen,
    client: LabClient,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help=f"Folders of runs. Default: {OFFLINE} in the current folder."),
    ] = None,
) -> None:
    """Imports what scripts logged without a server. A folder is imported only once."""
    found = [run for folder in folders or [_default_folder(client)] for run in _run_folders(folder)]
    imported = []
    for folder in found:
        run, is_new = client.import_run(str(folder), outside=bool(folders))
        if not is_new and not screen.as_json:
            note(f"{folder} is already imported.")
        imported.append(run)
    # The metrics of an imported run are read before it ends.
    active = [run["id"] for run in imported if not is_ended(run)]
    ended = {run["id"]: run for run in wait_for_ends(client, active, note, _IMPORT_SECONDS)} if active else {}
    shown = [ended.get(run["id"], run) for run in imported]
    if screen.as_json:
        screen.json(shown)
        return
    for run in shown:
        run_line(screen, run)
    screen.suggest(f"Metrics: labwright metrics {shown[-1]['id']}")


def _default_folder(client: LabClient) -> Path:
    here = Path(OFFLINE)
    return here if here.is_dir() else client.paths.project / OFFLINE


def _run_folders(folder: Path) -> list[Path]:
    folder = folder.absolute()
    if (folder / "run.json").exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/run.json")) if folder.is_dir() else []
    if not found:
        raise NotFound(f"There is no run to import in {folder}.", hint=f"Name a folder in {OFFLINE}.")
    return found
