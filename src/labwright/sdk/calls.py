"""The calls a script makes: `init`, `log`, `alert`, `finish` and the few around them. One run at a time a process."""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import RLock

from labwright.sdk import places
from labwright.sdk.held import Held, RunConfig, RunSummary, as_dict
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
    """What this process is logging now."""

    run: Run | None = None
    ending: ExitFile | None = None  # only where the run is our own
    watch: ExitWatch | None = None
    owner_pid = 0
    ended_own = False
    at_exit = False

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Also in a forked child: a thread of the parent may have held the lock."""
        self.lock = RLock()


_session = _Session()
os.register_at_fork(after_in_child=_session.begin_anew)
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
    """Begin to log: into the run this process is part of, else a run of its own on the server, else a local folder.

    Of several ranks only the first logs, unless `log_all_ranks`.
    `mode="disabled"` logs nothing, `mode="offline"` asks no server.
    `id` and `resume` need not be said in a Labwright run: it goes on by itself, also when it is tried again.
    `reinit` ends a run of the script's own and begins another.
    """
    values = {**_early_config.as_dict(), **as_dict(config)}
    words = {"project": project, "name": name, "group": group, "tags": _words(tags), "notes": notes}
    with _session.lock:
        if _session.run is not None and _owns_run() and reinit in (True, "finish_previous"):
            _session.run.finish()
        if _session.run is None:
            _session.run = _begin_safely(words, values, mode or "", log_all_ranks)
            _session.run.describe(words)
        run = _session.run
    if _session.ending is not None and _means_another_run(run, id, resume):
        say_once("this is a new run: one that has ended is final, and id and resume cannot go on with it")
    _early_config.clear()
    run.config.update(values)
    return run


def _means_another_run(run: Run, id: str | None, resume: Any) -> bool:
    """As wandb reads it: "allow" and "auto" are content with a new run, and so is an id without `resume`."""
    content = not resume or resume == "never" or (resume in ("allow", "auto") and not id)
    return not content and id != run.id


def _words(tags: Any) -> list[str]:
    several = hasattr(tags, "__iter__") and not isinstance(tags, str)
    return [str(tag) for tag in (tags if several else [tags]) if tag]


def _begin_safely(words: dict[str, Any], config: dict[str, Any], mode: str, all_ranks: bool) -> Run:
    about = {key: plain(value) for key, value in words.items() if value}
    rank = places.rank(os.environ)
    try:
        if mode == "disabled":
            return _begin_nowhere(about)
        if rank > 0 and not all_ranks:
            return _begin_beside(about, rank)
        return _begin(about, config, rank, offline=mode == "offline")
    except Exception as error:  # noqa: BLE001 - whatever this machine is like, training begins
        say(f"metrics are not kept ({type(error).__name__}: {error})")
        return _begin_nowhere(about)


def _begin_nowhere(about: dict[str, Any]) -> Run:
    return Run(LogTarget("", "", about.get("name", ""), owned=False), None, _end)


def _begin_beside(about: dict[str, Any], rank: int) -> Run:
    """Another rank than the first: its numbers are not kept, but what it has to tell people is."""
    if places.may_be_no_rank(os.environ):
        say_once(f"RANK is {rank}, so nothing is logged; if it is no rank, init(log_all_ranks=True) keeps its numbers")
    place = places.inside_run(os.environ)
    if place is None:
        run = _begin_nowhere(about)
    else:
        alerts = MetricsFile(place.run_dir, _header(place, {}, rank), place.run_id, place.wake)
        run = Run(place, None, _end, alerts)
        _prepare_exit()
    run.rank = rank
    return run


def _begin(about: dict[str, Any], config: dict[str, Any], rank: int, *, offline: bool) -> Run:
    place = _find_place(about, config, offline)
    if place is None:
        return _begin_nowhere({})
    header = _header(place, about, rank)
    file = MetricsFile(place.run_dir, header, place.run_id, place.wake)
    if place.owned:
        _own(place)
    first_step = next_step(place.run_dir, header)
    file.flush()  # its first line: whoever looks sees that the SDK is here
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
            say_once(f"name={name!r} has no effect: the run is called {inside.name!r} already")
        elif name and not inside.is_named:
            inside.name = name
        return inside
    project = places.find_project(os.getcwd())
    name = str(about.get("name") or places.script_name())[:200]
    facts = {**places.about_process(), "name": name}
    place = None
    key = os.urandom(12).hex()
    if not offline:
        tags = [*about.get("tags", ()), *(f"{word}:{about[word]}" for word in ("project", "group") if word in about)]
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
        say("there is no place to log to; metrics are not kept")
    return place


def _own(place: LogTarget) -> None:
    """From here on our children are part of this run, and we owe it the word on how it ended."""
    from labwright.sdk.ending import ExitFile, ExitWatch

    _session.ending = ExitFile(place.run_dir)
    _session.owner_pid = os.getpid()
    if _session.watch is None:
        _session.watch = ExitWatch()
    os.environ[places.RUN_ID] = place.run_id
    os.environ[places.RUN_DIR] = place.run_dir


def _owns_run() -> bool:
    return _session.ending is not None and os.getpid() == _session.owner_pid


def _prepare_exit() -> None:
    if not _session.at_exit:
        _session.at_exit = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    run = _session.run
    if run is None:
        return
    if _session.ending is not None and _session.watch is not None and os.getpid() == _session.owner_pid:
        verdict = _session.watch.verdict()
        run.end_file(verdict["exit_code"] if verdict else None)
        if verdict:
            _session.ending.record(verdict)
    else:
        run.flush()


def _end(run: Run, exit_code: int | None) -> None:
    """`finish()`: without a code, an exception on its way up means that it failed."""
    if run is not _session.run:
        return
    error = sys.exc_info()[1]
    code = (0 if error is None else 1) if exit_code is None else int(exit_code)
    run.end_file(code)
    _session.run = None
    if _session.ending is None or os.getpid() != _session.owner_pid:
        return
    from labwright.sdk.ending import ended_with

    _session.ending.record(ended_with(code, f"{type(error).__name__}: {error}"[:500] if error and code else None))
    _session.ending = None
    _session.ended_own = True
    run.mute()
    for variable in (places.RUN_ID, places.RUN_DIR):
        os.environ.pop(variable, None)


def join() -> Run:
    """The run this process logs to, begun now if need be."""
    return _session.run or init()


def _run_to_log() -> Run | None:
    if _session.run is None and _session.ended_own:
        say_once("log() after finish() is not kept; call init() for a new run")
        return None
    return join()


def log(data: dict[str, Any], step: int | None = None, commit: bool | None = None, sync: Any = None) -> None:  # noqa: ARG001
    """Keep these numbers under this step, or the next one. Returns when they are safe from a kill."""
    run = _session.run or _run_to_log()
    if run is not None:
        run.log(data, step, commit)


def alert(title: str, text: str = "", level: Any = "INFO", wait_duration: Any = 0) -> None:
    """Tell people, where they watch the run. `wait_duration`: seconds before the same title is told again."""
    run = _run_to_log()
    if run is not None:
        run.alert(title, text, level, wait_duration)


def save(path: Any = None, *ignored: Any, **also_ignored: Any) -> None:
    """Name a file, or all that a pattern matches, as a result of the run."""
    run = _run_to_log()
    if run is not None:
        run.save(path, *ignored, **also_ignored)


def finish(exit_code: int | None = None, **_ignored: Any) -> None:
    """Nothing more will come. A script that just ends need not say so."""
    if _session.run is not None:
        _session.run.finish(exit_code)


def define_metric(*ignored: Any, **also_ignored: Any) -> None:
    Run.define_metric(None, *ignored, **also_ignored)  # type: ignore[arg-type]


def watch(*ignored: Any, **also_ignored: Any) -> None:
    Run.watch(None, *ignored, **also_ignored)  # type: ignore[arg-type]


def login(*_ignored: Any, **_also_ignored: Any) -> bool:
    """There is nothing to log in to; scripts written for W&B ask."""
    return True


class _Current:
    """`labwright.config` and `labwright.summary`: those of the current run, whichever it is by then."""

    def __init__(self, name: str, before: Held) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_before", before)

    def _held(self) -> Any:
        run = _session.run
        return self._before if run is None else getattr(run, self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._held(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._held(), name, value)

    def __getitem__(self, key: str) -> Any:
        return self._held()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._held()[key] = value

    def __contains__(self, key: object) -> bool:
        return key in self._held()

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def __repr__(self) -> str:
        return repr(self._held())

    def __reduce__(self) -> Any:
        return dict, (self._held().as_dict(),)


config = _Current("config", _early_config)
summary = _Current("summary", _no_summary)
