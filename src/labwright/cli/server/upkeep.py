"""Upkeep: disk space, backups, the database, tokens."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.formatting import counted, parse_duration, size
from labwright.cli.options import AsJson, Project, connect, present_folder, project_folder
from labwright.cli.screen import Column, Screen
from labwright.cli.server.offline import run_without_server
from labwright.client.address import read_token
from labwright.client.lab import LabClient
from labwright.domain.actor import Scope
from labwright.domain.errors import Conflict, Invalid, ServerUnreachable, StorageFailed
from labwright.paths import ProjectPaths
from labwright.processes import user_name
from labwright.skills.header_file import keep_header
from labwright.tokens import mint

db = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


class TokenScope(StrEnum):
    VIEWER = Scope.VIEWER.value
    AGENT = Scope.AGENT.value


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be freed.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Logs and snapshots of runs that ended long ago, archived runs past their time, leftovers of deleted ones."""
    screen, client = Screen(as_json=as_json), connect(project)
    with screen.working("looking through the state folder"):
        report = client.collect_garbage(dry_run=dry_run)
        storage = client.storage()
    if as_json:
        screen.json({**report, "storage": storage})
        return
    did = "Would free" if dry_run else "Freed"
    parts = [
        counted(report["logs_removed"], "log"),
        counted(report["runs_deleted"], "archived run"),
        counted(report["orphan_folders"], "leftover folder"),
        counted(report["leftover_files"], "leftover file"),
    ]
    screen.say((f"{did} {size(report['freed_bytes'])}", "bold"), f": {', '.join(parts)}.")
    sizes = sorted(storage["bytes"].items(), key=lambda item: -item[1])
    rows = [*((name, size(count)) for name, count in sizes), ("all", size(storage["total_bytes"]))]
    screen.table([Column(title="part"), Column(title="on disk", right=True)], rows)
    screen.say((f"{size(storage['disk_free_bytes'])} free on this disk", "dim"))
    screen.next("Do it: labwright gc" if dry_run else "How long things are kept: keep_days in labwright.toml")


def backup(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="The whole history instead, as one file: see labwright restore."),
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """The server makes one from time to time by itself, too. With --to run folders, plans and output go along."""
    screen, folder = Screen(as_json=as_json), project_folder(project)
    if to and to.exists():  # told before the work begins
        raise Conflict(f"{to} is there already.", hint="Choose another name; a backup never replaces one.")
    with screen.working("writing a backup"):
        made = _copy_database(folder)
        if to:
            made = run_without_server("archive", folder, file=to.absolute(), database=Path(made["path"]))
    if as_json:
        screen.json(made)
    else:
        screen.say(made["path"])
    if to:
        screen.next(f"{counted(made['files'], 'file')}, {size(made['bytes'])}. Back: labwright restore {to}")


def _copy_database(project: Path) -> dict[str, Any]:
    """By the server, or without one."""
    try:
        return LabClient(project).backup()
    except ServerUnreachable:
        made: dict[str, Any] = run_without_server("backup", project)
        return made


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `labwright backup --to FILE` made.")],
    project: Annotated[
        Path | None, typer.Option("--project", metavar="DIR", help="Into this folder. Default: where you are.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Into a project that has no history. Queued runs begin at the next labwright up; secrets are not in a backup."""
    screen = Screen(as_json=as_json)
    folder = project_folder(project or present_folder())
    with screen.working("restoring"):
        seal = run_without_server("restore", folder, file=file.absolute())
    if as_json:
        screen.json(seal)
        return
    screen.say(f"Restored {counted(seal['files'], 'file')} of {seal['made_at']} into {ProjectPaths(folder).state}.")
    screen.next("Next: labwright up -d")


@db.callback()
def _db() -> None:
    pass


@db.command("rebuild")
def rebuild(
    backup: Annotated[
        Path | None, typer.Option("--backup", metavar="FILE", help="Begin with this one, not with the newest.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Make the database anew from folders, journal and newest backup; the old file is kept aside."""
    screen = Screen(as_json=as_json)
    with screen.working("reading the run folders"):
        rebuilt = run_without_server("rebuild", project_folder(project), backup=backup and backup.absolute())
    if as_json:
        screen.json(rebuilt)
        return
    parts = [counted(rebuilt[f"{noun}s"], noun) for noun in ("run", "sweep", "plan", "loop")]
    screen.say(f"Restored {', '.join(parts)}.")
    screen.facts(
        [
            ("began with", rebuilt["backup"] or "no backup"),
            ("old file", rebuilt["kept_aside"] or ""),
            ("unreadable", str(rebuilt["unreadable"] or "")),
        ]
    )
    screen.next("Next: labwright up -d")


def token(
    scope: Annotated[TokenScope, typer.Option(help="viewer reads; agent also runs and stops.")] = TokenScope.VIEWER,
    ttl: Annotated[str, typer.Option(metavar="TIME", help="How long it is valid.")] = "24h",
    header_file: Annotated[
        bool, typer.Option("--header-file", help="Keep it in a file for `curl -H @FILE`, and print the file's path.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Your own token instead, which may do everything.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Send it as X-Auth-Token, or as Authorization: Bearer. A new .labwright/token voids all of them."""
    screen, paths = Screen(as_json=as_json), ProjectPaths(project_folder(project))
    secret = read_token(paths)
    if show and header_file:
        raise Invalid("Your own token is in a file already.", hint="Leave out --show, or --header-file.")
    seconds = parse_duration(ttl)
    if seconds <= 0:
        raise Invalid("A token must be valid for some time.", hint="For example --ttl 8h.")
    name = user_name().replace(".", "-")  # a dot parts the fields of a token
    made = secret if show else mint(secret, Scope(scope.value), name, seconds)
    facts = {"scope": "person"} if show else {"scope": scope.value, "ttl_seconds": seconds}
    if header_file:
        made = str(_header_kept(paths, f"{scope.value}-{name}", made))
    if as_json:
        screen.json({"header_file" if header_file else "token": made, **facts})
    else:
        screen.say(made)


def _header_kept(paths: ProjectPaths, name: str, token: str) -> Path:
    try:
        return keep_header(paths.headers, name, token)
    except OSError as error:  # a write that fails does not say of which file
        raise StorageFailed(f"{paths.headers} cannot be written: {error.strerror}.") from error
