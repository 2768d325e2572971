"""Maintenance: disk space, backups, the database, tokens."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.command import AsJson, Project, current_folder, group, project_folder, with_client
from labwright.cli.formatting import parse_duration, plural, size
from labwright.cli.screen import Column, Screen
from labwright.cli.server.offline import run_without_server
from labwright.client.address import read_token
from labwright.client.lab import LabClient
from labwright.domain.actor import Scope
from labwright.domain.errors import Conflict, Invalid, ServerUnreachable, StorageFailed
from labwright.paths import ProjectPaths
from labwright.processes import user_name
from labwright.tokens import mint, write_header_file

db = group(no_args_is_help=True)


class TokenScope(StrEnum):
    VIEWER = Scope.VIEWER.value
    AGENT = Scope.AGENT.value


@with_client
def gc(
    screen: Screen,
    client: LabClient,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be freed.")] = False,
) -> None:
    """Removes logs and snapshots of old runs, expired archived runs, and leftovers of deleted runs."""
    with screen.working("reading the state folder"):
        report = client.collect_garbage(dry_run=dry_run)
        storage = client.storage()
    if screen.as_json:
        screen.json({**report, "storage": storage})
        return
    action = "Would free" if dry_run else "Freed"
    parts = [
        plural(report["logs_removed"], "log"),
        plural(report["runs_deleted"], "archived run"),
        plural(report["orphan_folders"], "leftover folder"),
        plural(report["leftover_files"], "leftover file"),
    ]
    screen.print((f"{action} {size(report['freed_bytes'])}", "bold"), f": {', '.join(parts)}.")
    sizes = sorted(storage["bytes"].items(), key=lambda item: -item[1])
    rows = [*((name, size(count)) for name, count in sizes), ("total", size(storage["total_bytes"]))]
    screen.table([Column("part", lambda row: row[0]), Column("on disk", lambda row: row[1], right=True)], rows)
    screen.print((f"{size(storage['disk_free_bytes'])} free on this disk", "dim"))
    screen.suggest("Free it: labwright gc" if dry_run else "Retention time: keep_days in labwright.toml")


def backup(
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="Write the whole history to one file instead. See labwright restore."
        ),
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """The server also writes backups regularly. With --to, run folders, plans and output are included."""
    screen, folder = Screen(as_json=as_json), project_folder(project)
    if to and to.exists():
        raise Conflict(f"{to} already exists.", hint="Choose another name. A backup never replaces a file.")
    with screen.working("writing a backup"):
        made = _back_up_database(folder)
        if to:
            made = run_without_server("archive", folder, file=to.absolute(), database=Path(made["path"]))
    screen.result(made, lambda _: screen.print(made["path"]))
    if to:
        screen.suggest(f"{plural(made['files'], 'file')}, {size(made['bytes'])}. To restore: labwright restore {to}")


def _back_up_database(project: Path) -> dict[str, Any]:
    """Let the server write the backup, or write it without a server."""
    try:
        return LabClient(project).backup()
    except ServerUnreachable:
        made: dict[str, Any] = run_without_server("backup", project)
        return made


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file from `labwright backup --to FILE`.")],
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Restore into this folder. Default: the current one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The folder must have no history. Queued runs start at the next labwright up. Backups contain no secrets."""
    screen = Screen(as_json=as_json)
    folder = project_folder(project or current_folder())
    with screen.working("restoring"):
        seal = run_without_server("restore", folder, file=file.absolute())
    if as_json:
        screen.json(seal)
        return
    screen.print(f"Restored {plural(seal['files'], 'file')} from {seal['made_at']} to {ProjectPaths(folder).state}.")
    screen.suggest("Next: labwright up -d")


@db.callback()
def _db() -> None:
    pass


@db.command("rebuild")
def rebuild(
    backup: Annotated[
        Path | None, typer.Option("--backup", metavar="FILE", help="Start from this backup instead of the newest.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the database from run folders, journal and newest backup. The old file is kept."""
    screen = Screen(as_json=as_json)
    with screen.working("reading the run folders"):
        rebuilt = run_without_server("rebuild", project_folder(project), backup=backup and backup.absolute())
    if as_json:
        screen.json(rebuilt)
        return
    parts = [plural(rebuilt[f"{noun}s"], noun) for noun in ("run", "sweep", "plan", "loop")]
    screen.print(f"Restored {', '.join(parts)}.")
    screen.facts(
        [
            ("started from", rebuilt["backup"] or "no backup"),
            ("old file", rebuilt["kept_aside"] or ""),
            ("unreadable", str(rebuilt["unreadable"] or "")),
        ]
    )
    screen.suggest("Next: labwright up -d")


def token(
    scope: Annotated[
        TokenScope, typer.Option(help="viewer can read; agent can also run and stop.")
    ] = TokenScope.VIEWER,
    ttl: Annotated[str, typer.Option(metavar="TIME", help="How long the token is valid.")] = "24h",
    header_file: Annotated[
        bool, typer.Option("--header-file", help="Save it in a file for `curl -H @FILE`, and print the path.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print your own token instead. It allows everything.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Send it as X-Auth-Token, or as Authorization: Bearer. A new .labwright/token revokes all tokens."""
    screen, paths = Screen(as_json=as_json), ProjectPaths(project_folder(project))
    secret = read_token(paths)
    if show and header_file:
        raise Invalid("--show and --header-file exclude each other.", hint="Your own token is in .labwright/token.")
    seconds = parse_duration(ttl)
    if seconds <= 0:
        raise Invalid("--ttl must be more than 0.", hint="For example --ttl 8h.")
    name = user_name().replace(".", "-")  # a dot separates the fields of a token
    made = secret if show else mint(secret, Scope(scope.value), name, seconds)
    facts = {"scope": "person"} if show else {"scope": scope.value, "ttl_seconds": seconds}
    if header_file:
        made = str(_save_header(paths, f"{scope.value}-{name}", made))
    if as_json:
        screen.json({"header_file" if header_file else "token": made, **facts})
    else:
        screen.print(made)


def _save_header(paths: ProjectPaths, name: str, token: str) -> Path:
    try:
        return write_header_file(paths.headers, name, token)
    except OSError as error:  # an error of a write does not name the file
        raise StorageFailed(f"{paths.headers} cannot be written: {error.strerror}.") from error
