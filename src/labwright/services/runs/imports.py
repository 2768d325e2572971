"""Import a folder that the SDK wrote without a server: `run.json`, `metrics/`, and possibly `exit.json`.

The id is derived from the folder's name and `run.json`, so importing is idempotent, even after a database rebuild.
Files are copied aside, renamed, then recorded: after a kill, a second try starts cleanly.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.notify.message import IMPORTED
from labwright.compute.runs.endings import end_run
from labwright.domain.actor import Actor
from labwright.domain.clock import epoch_seconds, now, rfc3339
from labwright.domain.errors import Conflict, Invalid, NotFound
from labwright.domain.ids import RUN, id_of
from labwright.domain.metrics.points import as_number
from labwright.domain.run import EXTERNAL, Run, RunStatus
from labwright.files import create_exclusive, write_json, write_new
from labwright.paths import ARTIFACTS, RunPaths
from labwright.processes import ProcessIdentity, identity, kept_exit_code
from labwright.store import runs

_SMALL_BYTES = 2 << 20
_LATEST = 1e11  # seconds since 1970; later times are not plausible
_METRICS_FILE = re.compile(r"[A-Za-z0-9_.@=+-]{1,200}\.jsonl")
_ENDS = {status.value: status for status in (RunStatus.FINISHED, RunStatus.FAILED, RunStatus.STOPPED)}
_USAGE = ("wall_seconds", "cpu_seconds", "max_memory_mb")
_UNKNOWN_COMMAND = "false # imported; its command is not known"
_WARNINGS_SHOWN = 5
_one_at_a_time = threading.Lock()  # two imports of one folder would write to the same run folder

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    run: Run
    already_there: bool


def import_folder(lab: Lab, path: str, actor: Actor, *, outside: bool) -> Imported:
    """Import a folder. If it has been imported before, return its run."""
    folder = _check_folder(lab, path, outside)
    raw = _read(folder / "run.json")
    facts = _as_object(raw, folder / "run.json")
    _refuse_running(facts, folder)
    with _one_at_a_time:
        run_id, known = _id_for(lab, folder.name.encode() + b"\n" + raw)
        if known is not None:
            return Imported(run=known, already_there=True)
        end = _end_facts(folder)
        run = _copy(lab, folder, _run(lab, run_id, facts, folder, actor), end)
        lost_at = None if end else rfc3339(_newest_change(folder))
        with lab.db.transaction() as tx:
            tx.on_rollback.append(lambda: shutil.rmtree(lab.paths.run(run_id).dir))
            runs.insert(tx, run, str(actor))
            if lost_at is not None:  # otherwise the engine ends the run after it has read the metrics
                message = "The process ended without an exit code."
                run = end_run(tx, run, RunStatus.LOST, reason="no_exit", error=message, ended_at=lost_at)
    lab.wake()
    lab.metrics_arrived(run_id)
    return Imported(run=run, already_there=False)


def _check_folder(lab: Lab, path: str, outside: bool) -> Path:
    folder = Path(os.path.realpath(lab.paths.project / os.path.expanduser(path)))
    if not os.path.isfile(folder / "run.json"):
        hint = "Name a folder below .labwright-offline on the server's machine."
        raise Invalid(f"{folder} is not a run that was logged without a server.", hint=hint)
    if not outside and not folder.is_relative_to(os.path.realpath(lab.paths.project)):
        raise Invalid(f"{folder} is outside of the project.", hint='Send {"outside": true} to import it anyway.')
    return folder


def _refuse_running(facts: Json, folder: Path) -> None:
    try:
        process = ProcessIdentity.from_dict(facts)
        alive = process.is_here and process.is_alive
    except (KeyError, TypeError, ValueError, OSError):
        return  # the process is unknown
    if alive and not os.path.exists(folder / "exit.json"):
        raise Conflict(
            f"Process {process.pid} still logs into {folder}.", hint="Import it after the process has ended."
        )


def _id_for(lab: Lab, content: bytes) -> tuple[str, Run | None]:
    """Return the id for this content and its run, if any. A deleted run's id is not used again."""
    _, deleted = lab.journal.read()
    number = 0
    while True:
        run_id = id_of(RUN, b"%d\n%s" % (number, content))
        try:
            return run_id, runs.get(lab.db.reader(), run_id)
        except NotFound:
            if run_id not in deleted:
                return run_id, None
        number += 1


def _run(lab: Lab, run_id: str, facts: Json, folder: Path, actor: Actor) -> Run:
    started = _moment(facts.get("started_at")) or now()
    tags = facts.get("tags")
    own_tags = [_text(tag, 100) for tag in tags[:50]] if isinstance(tags, list) else []
    # The SDK sends project and group to a server as tags.
    sdk_tags = [f"{name}:{_text(facts.get(name), 90)}" for name in ("project", "group") if facts.get(name)]
    run = Run(
        id=run_id,
        name=_text(facts.get("name"), 200) or folder.name,
        command=_text(facts.get("command"), 1_000_000) or _UNKNOWN_COMMAND,
        workdir=_text(facts.get("workdir"), 4096) or str(lab.paths.project),
        created_at=now(),
        created_by=str(actor),
        params=_params(facts.get("config")),
        tags=tuple(dict.fromkeys([*filter(None, own_tags), *sdk_tags, IMPORTED])),
        notes=_text(facts.get("notes"), 10_000) or f"Imported from {folder}.",
    )
    run = run.move(RunStatus.QUEUED, queued_at=started)
    run = run.move(RunStatus.LAUNCHING, launched_at=started, launcher=EXTERNAL, run_dir=lab.paths.run(run_id).dir)
    return run.move(RunStatus.RUNNING, started_at=started, node=_text(facts.get("host"), 300) or None)


def _copy(lab: Lab, folder: Path, run: Run, end: Json | None) -> Run:
    """Copy the files into a temporary folder, then rename it to the run folder."""
    target = lab.paths.run(run.id)
    aside = RunPaths(lab.paths.runs / f".{run.id}.import")
    for leftover in (aside.dir, target.dir):  # from an import that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    os.makedirs(aside.metrics, mode=0o700)
    try:
        skipped = _copy_files(folder, Path(aside.dir))
        run = run.evolve(warnings=tuple(skipped[:_WARNINGS_SHOWN]))
        write_new(aside.command, run.command.encode() + b"\n")
        write_json(aside.spec, {"run": run.to_dict(), "sidecar": {}, "imported_from": str(folder)})
        dead_process = replace(identity(os.getpid()), start_time=0).to_dict()
        claim = {**dead_process, "attempt": 1, "external": True}
        create_exclusive(aside.claim(1), json.dumps(claim).encode())
        if end is not None:
            write_json(aside.exit, end)
        os.rename(aside.dir, target.dir)
    finally:
        shutil.rmtree(aside.dir, ignore_errors=True)
    return run


def _copy_files(folder: Path, to: Path) -> list[str]:
    """Copy metrics and artifacts. Return a message for each file that was skipped, such as a link."""
    skipped = []
    for source in _files(folder / "metrics", folder / ARTIFACTS):
        name = source.relative_to(folder)
        is_known = name.parts[0] == ARTIFACTS or (len(name.parts) == 2 and _METRICS_FILE.fullmatch(name.name))
        fd = _open(source) if is_known else None
        if fd is None:
            skipped.append(f"Not imported: {name}".encode(errors="replace").decode())
            continue
        target = to / name
        with os.fdopen(fd, "rb") as file:
            target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
    return skipped


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        for place, _, names in os.walk(folder, followlinks=False):
            if not os.path.islink(place):
                yield from (Path(place) / name for name in sorted(names))


def _open(path: Path) -> int | None:
    """Open a regular file. Return None for links, FIFOs and the like."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise Invalid(f"{path} cannot be read: {error.strerror}.") from None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def _read(path: Path) -> bytes:
    fd = _open(path)
    if fd is None:
        raise Invalid(f"{path} is not a plain file.")
    with os.fdopen(fd, "rb") as file:
        content = file.read(_SMALL_BYTES + 1)
    if len(content) > _SMALL_BYTES:
        raise Invalid(f"{path} is larger than {_SMALL_BYTES >> 20} MB.")
    return content


def _as_object(raw: bytes, path: Path) -> Json:
    try:
        content = json.loads(raw)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Invalid(f"{path} does not hold a JSON object.")
    return content


def _end_facts(folder: Path) -> Json | None:
    """Return the end as a supervisor writes it, or None if it is unknown."""
    path = folder / "exit.json"
    if os.path.lexists(path):
        facts = _as_object(_read(path), path)
    else:
        code = kept_exit_code(str(folder / "exit.code"))
        if code is None:
            return None
        facts = {"exit_code": code, "reason": "exit_code" if code else "", "error": f"Exit code {code}" if code else ""}
    code = facts.get("exit_code")
    exit_code = code if type(code) is int and abs(code) < 2**31 else None
    default_status = RunStatus.FAILED if exit_code else RunStatus.FINISHED
    signal = facts.get("signal")
    usage = facts.get("usage")
    return {
        "attempt": 1,
        "status": _ENDS.get(str(facts.get("status")), default_status),
        "reason": _text(facts.get("reason"), 500),
        "exit_code": exit_code,
        "signal": signal if type(signal) is int and 0 < signal < 128 else None,
        "error": _text(facts.get("error"), 5000) or None,
        "ended_at": _seconds(facts.get("ended_at")) or _newest_change(folder),
        "usage": {name: usage[name] for name in _USAGE if _seconds(usage.get(name))} if isinstance(usage, dict) else {},
    }


def _newest_change(folder: Path) -> float:
    return max(os.lstat(path).st_mtime for path in (folder / "run.json", *_files(folder / "metrics")))


def _moment(value: object) -> str | None:
    """Return RFC 3339 text for a number of seconds or a timestamp."""
    if isinstance(value, str):
        try:
            value = epoch_seconds(value)
        except (ValueError, OverflowError):
            return None
    seconds = _seconds(value)
    return None if seconds is None else rfc3339(seconds)


def _seconds(value: object) -> float | None:
    number = as_number(value)
    return number if number is not None and 0 <= number <= _LATEST else None


def _text(value: object, limit: int) -> str:
    """Return the text without NUL characters and invalid Unicode."""
    text = value if isinstance(value, str) else ""
    return text[:limit].replace("\0", "�").encode(errors="replace").decode()


def _params(config: object) -> Json:
    """Return the config as plain JSON; NaN and infinities become strings."""
    if not isinstance(config, dict):
        return {}
    text = json.dumps(config, ensure_ascii=False).encode(errors="replace").decode()
    params: Json = json.loads(text, parse_constant=str)
    return params
