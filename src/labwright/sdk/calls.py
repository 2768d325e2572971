"""The calls of a script: `init`, `log`, `alert`, `finish` and a few more. A process has one run at a time."""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import RLock

from labwright.sdk import places
from labwright.sdk.held import RunConfig, RunSummary, RunValues, as_dict
from labwright.sdk.lines import plain, say, say_once
from labwright.sdk.metrics_file import MetricsFile, next_step
from labwright.sdk.places import LogTarget
from labwright.sdk.tracked import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labwright.sdk.ending import ExitFile, ExitWatch


class _Session:
    """The current run of this process."""

    run: Run | None = None
    exit_file: ExitFile | None = None  # only if this process created the run
    watch: ExitWatch | None = None
    owner_pid = 0
    ended_own = False
    at_exit = False

    def __init__(self) -> None:
        self.reset_lock()

    def reset_lock(self) -> None:
        """Make a new lock, also in a forked child: a thread of the parent may have held the old one."""
        self.lock = RLock()


_session = _Session()
os.register_at_fork(after_in_child=_session.reset_lock)
_early_config = RunConfig(lambda _values: None, {})  # set before `init`
_no_summary = RunSummary(lambda _key, _value: None)


def current() -> Run | None:
    return _session.run


def init(
    project: str | None = None,
    name: str | None = None,
    group: str | None = None,
    config: Any = None,
    resume: Any = None,
    tags: Any = None,
    notes: str | None = None,
    *,
    id: str | None = None,
    log_all_ranks: bool = False,
    mode: str | None = None,
    reinit: Any = None,
    **_ignored: Any,
) -> Run:
    """Start logging: into the run of this process, else into a new run on the server, else into a local folder.

    Only the first of several ranks logs, unless `log_all_ranks` is set.
    `mode="disabled"` logs nothing; `mode="offline"` contacts no server.
    `id` and `resume` are not needed in a Labwright run: it continues by itself, also when it is retried.
    `reinit` ends a run that the script created and starts another.
    """
    values = {**_early_config.as_dict(), **as_dict(config)}
    labels = {"project": project, "name": name, "group": group, "tags": _tag_list(tags), "notes": notes}
    with _session.lock:
        owns_run = _session.exit_file is not None and os.getpid() == _session.owner_pid
        if _session.run is not None and owns_run and reinit in (True, "finish_previous"):
            _session.run.finish()
        if _session.run is None:
            _session.run = _start_safely(labels, values, mode or "", log_all_ranks)
            _session.run.describe(labels)
        run = _session.run
    if _session.exit_file is not None and _needs_old_run(run, id, resume):
        say_once("this is a new run: a run that has ended cannot be continued with id and resume")
    _early_config.clear()
    run.config.update(values)
    return run


def _needs_old_run(run: Run, id: str | None, resume: Any) -> bool:
    """Return whether W&B would require an old run here. "allow", "auto" and an id without `resume` accept a new one."""
    accepts_new = not resume or resume == "never" or (resume in ("allow", "auto") and not id)
    return not accepts_new and id != run.id


def _tag_list(tags: Any) -> list[str]:
    several = hasattr(tags, "__iter__") and not isinstance(tags, str)
    return [str(tag) for tag in (tags if several else [tags]) if tag]


def _start_safely(labels: dict[str, Any], config: dict[str, Any], mode: str, all_ranks: bool) -> Run:
    about = {key: plain(value) for key, value in labels.items() if value}
    rank = places.rank(os.environ)
    try:
        if mode == "disabled":
            return _start_disabled(about)
        if rank > 0 and not all_ranks:
            return _start_other_rank(about, rank)
        return _start(about, config, rank, offline=mode == "offline")
    except Exception as error:  # noqa: BLE001 - training must start on any machine
        say(f"metrics are not logged ({type(error).__name__}: {error})")
        return _start_disabled(about)


def _start_disabled(about: dict[str, Any]) -> Run:
    return Run(LogTarget("", "", about.get("name", ""), owned=False), None, _end)


def _start_other_rank(about: dict[str, Any], rank: int) -> Run:
    """Start on a rank other than the first: its numbers are not logged, but its alerts are."""
    if places.is_rank_doubtful(os.environ):
        say_once(f"RANK is {rank}, so nothing is logged; if it is not a rank, use init(log_all_ranks=True)")
    place = places.inside_run(os.environ)
    if place is None:
        run = _start_disabled(about)
    else:
        alerts = MetricsFile(place.run_dir, _header(place, {}, rank), place.run_id, place.wake)
        run = Run(place, None, _end, alerts)
        _prepare_exit()
    run.rank = rank
    return run


def _start(about: dict[str, Any], config: dict[str, Any], rank: int, *, offline: bool) -> Run:
    place = _find_place(about, config, offline)
    if place is None:
        return _start_disabled({})
    header = _header(place, about, rank)
    file = MetricsFile(place.run_dir, header, place.run_id, place.wake)
    if place.owned:
        _own(place)
    first_step = next_step(place.run_dir, header)
    file.flush()  # the first line shows readers that the script uses the SDK
    _prepare_exit()
    run = Run(place, file, _end, first_step=first_step)
    run.rank = rank
    return run


def _header(place: LogTarget, about: dict[str, Any], rank: int) -> dict[str, Any]:
    of_try = {"attempt": place.attempt, "try": os.environ.get(places.TRY, ""), "host": os.uname().nodename}
    return {**of_try, "rank": rank, "v": 1, **about}


def _find_place(about: dict[str, Any], config: dict[str, Any], offline: bool) -> LogTarget | None:
    inside = places.inside_run(os.environ)
    if inside is not None:
        name = about.get("name")
        if name and inside.is_named and name != inside.name:
            say_once(f"name={name!r} has no effect: the run is already called {inside.name!r}")
        elif name and not inside.is_named:
            inside.name = name
        return inside
    project = places.find_project(os.getcwd())
    name = str(about.get("name") or places.script_name())[:200]
    facts = {**places.about_process(), "name": name}
    place = None
    key = os.urandom(12).hex()
    if not offline:
        tags = [
            *about.get("tags", ()),
            *(f"{label}:{about[label]}" for label in ("project", "group") if label in about),
        ]
        body = {
            **facts,
            "params": plain(config),
            "tags": [tag[:100] for tag in tags[:50]],
            "notes": about.get("notes", ""),
        }
        place = places.on_server(project, body, key)
    if place is None:
        record = {"project": "", **about, **facts, "config": plain(config), "started_at": time.time(), "key": key}
        place = places.offline(project, record)
    if place is not None:
        say(f"logging to {place.url if place.url and place.url.startswith('http') else place.run_dir}")
    else:
        say("no folder can be written, so metrics are not logged")
    return place


def _own(place: LogTarget) -> None:
    """Make this process the owner of the run: its children join the run, and it records the end."""
    from labwright.sdk.ending import ExitFile, ExitWatch

    _session.exit_file = ExitFile(place.run_dir)
    _session.owner_pid = os.getpid()
    if _session.watch is None:
        _session.watch = ExitWatch()
    os.environ[places.RUN_ID] = place.run_id
    os.environ[places.RUN_DIR] = place.run_dir


def _prepare_exit() -> None:
    if not _session.at_exit:
        _session.at_exit = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    run = _session.run
    if run is None:
        return
    if _session.exit_file is not None and _session.watch is not None and os.getpid() == _session.owner_pid:
        result = _session.watch.result()
        run.end_file(result["exit_code"] if result else None)
        if result:
            _session.exit_file.record(result)
    else:
        run.flush()


def _end(run: Run, exit_code: int | None) -> None:
    """Handle `finish()`. Without a code, an exception in flight means failure."""
    if run is not _session.run:
        return
    error = sys.exc_info()[1]
    code = (0 if error is None else 1) if exit_code is None else int(exit_code)
    run.end_file(code)
    _session.run = None
    if _session.exit_file is None or os.getpid() != _session.owner_pid:
        return
    from labwright.sdk.ending import ended_with

    _session.exit_file.record(ended_with(code, f"{type(error).__name__}: {error}"[:500] if error and code else None))
    _session.exit_file = None
    _session.ended_own = True
    run.mute()
    for variable in (places.RUN_ID, places.RUN_DIR):
        os.environ.pop(variable, None)


def join() -> Run:
    """Return the run of this process. Start it if necessary."""
    return _session.run or init()


def _run_to_log() -> Run | None:
    if _session.run is None and _session.ended_own:
        say_once("log() after finish() has no effect; call init() for a new run")
        return None
    return join()


def log(data: dict[str, Any], step: int | None = None, commit: bool | None = None, sync: Any = None) -> None:  # noqa: ARG001
    """Log these numbers at this step, or the next one. When it returns, they survive a kill."""
    run = _session.run or _run_to_log()
    if run is not None:
        run.log(data, step, commit)


def alert(title: str, text: str = "", level: Any = "INFO", wait_duration: Any = 0) -> None:
    """Raise an alert. `wait_duration`: seconds before the same title is sent again."""
    run = _run_to_log()
    if run is not None:
        run.alert(title, text, level, wait_duration)


def save(path: Any = None, *ignored: Any, **also_ignored: Any) -> None:
    """Record a file, or all files that match a pattern, as a result of the run."""
    run = _run_to_log()
    if run is not None:
        run.save(path, *ignored, **also_ignored)


def finish(exit_code: int | None = None, **_ignored: Any) -> None:
    """End logging. A script that simply ends does not need it."""
    if _session.run is not None:
        _session.run.finish(exit_code)


def define_metric(*ignored: Any, **also_ignored: Any) -> None:
    Run.define_metric(None, *ignored, **also_ignored)  # type: ignore[arg-type]


def watch(*ignored: Any, **also_ignored: Any) -> None:
    Run.watch(None, *ignored, **also_ignored)  # type: ignore[arg-type]


def login(*_ignored: Any, **_also_ignored: Any) -> bool:
    """Return True. Scripts written for W&B call it; Labwright needs no login."""
    return True


class _Current:
    """`labwright.config` and `labwright.summary`: always those of the current run."""

    def __init__(self, name: str, before: RunValues) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_before", before)

    def _target(self) -> Any:
        run = _session.run
        return self._before if run is None else getattr(run, self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._target(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target(), name, value)

    def __getitem__(self, key: str) -> Any:
        return self._target()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._target()[key] = value

    def __contains__(self, key: object) -> bool:
        return key in self._target()

    def __iter__(self) -> Iterator[str]:
        return iter(self._target())

    def __len__(self) -> int:
        return len(self._target())

    def __repr__(self) -> str:
        return repr(self._target())

    def __reduce__(self) -> Any:
        return dict, (self._target().as_dict(),)


config = _Current("config", _early_config)
summary = _Current("summary", _no_summary)
