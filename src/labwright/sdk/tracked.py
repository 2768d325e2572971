"""One tracked run, as the script sees it. `log` is the hot path: a format, a write, nothing else."""

from __future__ import annotations

import os
from time import monotonic, time

from labwright.sdk.held import OF_RUNS, RunConfig, RunSummary, not_kept
from labwright.sdk.lines import (
    KEY_LIMIT,
    NotLoggable,
    clean,
    fact_line,
    flattened,
    float_text,
    key_text,
    metric_lines,
    number_text,
    plain,
    say,
    say_once,
    template,
)
from labwright.sdk.media import as_media
from labwright.sdk.metrics_file import WAKE_SECONDS, MetricsFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labwright.sdk.places import LogTarget

_FIRST_STEP, _LAST_STEP = -(1 << 63), (1 << 63) - 1
_TEMPLATES = 512
_TEMPLATE_KEYS = 200
_REMEMBERED = 100_000
_CONFIG_LIMIT = 900_000
_SAID_ALOUD = 5
_REFUSALS = 1000
_LEVELS = {"INFO": "INFO", "WARN": "WARN", "WARNING": "WARN", "ERROR": "ERROR", "CRITICAL": "ERROR"}

_write = os.write


class AlertLevel:
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class Run:
    """What `init` answers. Without a file (another rank, logging switched off) every call is taken and does nothing.

    `alerts` is the file for alerts: another rank has one too.
    """

    rank = 0
    project = group = notes = entity = job_type = ""  # as `init` was told; W&B's last two mean nothing here
    tags: tuple[str, ...] = ()
    resumed = False

    def __init__(
        self,
        place: LogTarget,
        file: MetricsFile | None,
        on_finish: Callable[[Run, int | None], None],
        alerts: MetricsFile | None = None,
        first_step: int = 0,
    ) -> None:
        self.id = place.run_id
        self._name = place.name
        self.dir = place.run_dir
        self.url = place.url
        self.config = RunConfig(self._log_config, place.params)
        self.summary = RunSummary(self._log_summary)
        self._place = place
        self._file = file
        self._alerts = alerts or file
        self._on_finish = on_finish
        self._next_step = first_step
        self._templates: dict[tuple[str, ...], str] = {}
        self._last = self.summary.last_lines
        self._refused: dict[str, int] = {}  # how often since it was told
        self._alerted: dict[str, float] = {}

    def describe(self, words: dict[str, Any]) -> None:
        """What `init` was told, for scripts that ask."""
        self.project, self.group, self.notes = (words[name] or "" for name in ("project", "group", "notes"))
        self.tags = tuple(words["tags"])

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        say_once(f"run.name = {_shown(value)} has no effect: init(name=…) names a run")

    @property
    def step(self) -> int:
        """Where the next `log` without a step goes."""
        return self._next_step

    def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None, sync: Any = None) -> None:  # noqa: ARG002
        """Keep these numbers. As with W&B, a call without a step ends its step; with a step or `commit=False` not."""
        file = self._file
        if file is None:
            return
        if step.__class__ is int and _FIRST_STEP <= step <= _LAST_STEP:
            at: int = step
            if at >= self._next_step:
                self._next_step = at + 1 if commit else at
        else:
            own = self._step_for(step, commit)
            if own is None:
                return
            at = own
        try:
            keys = tuple(data)
            form = self._templates[keys]
            try:
                texts = [*map(float_text, data.values())]
            except TypeError:  # not all of them floats
                texts = [*map(number_text, data.values())]
            now = time()
            line = (form % (at, now, *texts)).encode()
            usual = "n" not in "".join(texts)  # a nan or inf, as Python spells them
        except Exception:  # noqa: BLE001 - anything but known keys with numbers is looked at one by one
            usual = False
        if not usual:
            self._log_one_by_one(data, at)
            return
        try:
            written = _write(file.fd, line)
        except OSError:
            written = 0
        if written != len(line):
            file.keep(line, written)
        self._last[keys] = now, texts
        if not 0.0 < file.wake_at - now <= WAKE_SECONDS:
            file.wake(now)

    def _step_for(self, step: Any, commit: bool | None) -> int | None:
        """The script's step in whatever type it comes, or our own; None for one that is no step."""
        assert self._file is not None
        if step is not None:
            try:
                at = int(step)
                if at == step and _FIRST_STEP <= at <= _LAST_STEP:
                    if at >= self._next_step:
                        self._next_step = at + 1 if commit else at
                    return at
            except Exception:  # noqa: BLE001, S110 - a foreign type; what it raises does not matter
                pass
            self._refuse("step", f"{_shown(step)} is no whole number of 64 bits")
            return None
        with self._file.lock:
            at = self._next_step
            if commit is None or commit:
                self._next_step = at + 1
        if at > _LAST_STEP:
            self._refuse("step", f"there is none after {_LAST_STEP}")
            return None
        return at

    def _log_one_by_one(self, data: Any, step: int) -> None:
        if not hasattr(data, "items"):
            self._refuse("log()", f"it takes a dict, not a {type(data).__name__}")
            return
        try:
            pairs = self._pairs(data, step)
            if pairs and self._file is not None:
                self._file.write(metric_lines(step, time(), pairs))
        except Exception as error:  # noqa: BLE001 - whatever was passed in, training goes on
            self._refuse("log()", f"{type(data).__name__}: {error}")

    def _pairs(self, data: Any, step: int) -> list[str]:
        """`"key":number` for what is a number; the rest is stored as an artifact or refused."""
        pairs = []
        all_numbers = True
        for key, value in flattened(data):
            try:
                if value.__class__ is float or value.__class__ is int or not self._log_media(key, value, step):
                    text = number_text(value)
                    pairs.append(f"{key_text(key)}:{text}")
                    self.summary.remember(key, text)
                    continue
            except Exception as refusal:  # noqa: BLE001 - one odd value must not cost the others
                self._refuse(key, str(refusal) or type(refusal).__name__)
            all_numbers = False
        if all_numbers and len(pairs) == len(data):
            self._learn(data)
        return pairs

    def _learn(self, data: Any) -> None:
        keys = tuple(data)
        if len(keys) <= _TEMPLATE_KEYS and len(self._templates) < _TEMPLATES and all(type(key) is str for key in keys):
            self._templates[keys] = template(keys)

    def _log_summary(self, key: str, value: Any) -> None:
        self.log({key: value}, self._next_step, commit=False)

    def _log_media(self, key: str, value: Any, step: int) -> bool:
        things = as_media(value)
        for thing in things:
            key_text(key)
            try:
                path = thing.store(self.dir, key, step)
            except NotLoggable:
                raise
            except Exception as error:  # noqa: BLE001 - a full disk, or a library's own; training goes on
                raise NotLoggable(f"could not be stored: {error}") from None
            self._log_artifact(key, thing.kind, path, step, thing.caption)
        return bool(things)

    def _log_artifact(self, key: str, kind: str, path: str, step: int, caption: str | None = None) -> None:
        facts = {"key": clean(key), "kind": kind, "path": clean(path), "caption": plain(caption)}
        self._tell({"s": step, "artifact": facts})

    def _log_config(self, values: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            line = fact_line({"t": round(time(), 3), "config": plain(values)})
            if len(line) > _CONFIG_LIMIT:
                raise NotLoggable(f"{len(line)} bytes; up to {_CONFIG_LIMIT} are kept")
            self._file.write(line)
        except Exception as error:  # noqa: BLE001 - a config may hold any object
            self._refuse("config", str(error))

    def alert(self, title: str, text: str = "", level: Any = "INFO", wait_duration: Any = 0) -> None:
        """Tell people. `wait_duration` (seconds): not the same title again before that time has passed."""
        try:
            title, now = clean(str(title)[:KEY_LIMIT]), monotonic()
            if now < self._alerted.get(title, now):
                return
            if hasattr(wait_duration, "total_seconds"):
                wait_duration = wait_duration.total_seconds()
            if len(self._alerted) < _REMEMBERED:
                self._alerted[title] = now + float(wait_duration or 0)
            level = _LEVELS.get(str(getattr(level, "value", level)).upper(), "INFO")
            words = f"{text} (rank {self.rank})".strip() if self.rank else str(text)
            self._tell_people({"title": title, "text": plain(words), "level": level})
        except Exception as error:  # noqa: BLE001 - whatever was passed in, training goes on
            self._refuse("alert()", str(error))

    def _tell_people(self, alert: dict[str, Any]) -> None:
        if self._alerts is not None:
            self._alerts.write(fact_line({"t": round(time(), 3), "alert": alert}))
        elif self.rank:
            say_once(f"alert() of rank {self.rank} is not kept: the script is in no run of Labwright's")

    def save(self, path: Any = None, *_ignored: Any, **_also_ignored: Any) -> None:
        """Name a file as a result of this run. It stays where it is; a pattern names all it matches.

        One below `artifacts` in the run's folder can be opened and downloaded on the run's page.
        Without a path it is W&B's old way to send a new name, and does nothing.
        """
        if self._file is None or path is None:
            return
        try:
            import glob

            found = sorted(glob.glob(os.path.abspath(os.fspath(path))))
            if not found:
                raise NotLoggable("no such file")
            for file in found[:1000]:
                self._log_artifact(os.path.basename(file), "file", self._from_run_folder(file), self._next_step)
        except Exception as error:  # noqa: BLE001 - whatever was passed in, training goes on
            self._refuse(f"save({_shown(path)})", str(error))

    def _from_run_folder(self, file: str) -> str:
        """What is among the run's own files is named as they are, so that it is found, also once they have moved."""
        return file[len(self.dir) + 1 :] if file.startswith(f"{self.dir}/artifacts/") else file

    def define_metric(self, *_ignored: Any, **_also_ignored: Any) -> None:
        say_once("define_metric() has no effect: every metric has its step, its time and its extremes anyway")

    def watch(self, *_ignored: Any, **_also_ignored: Any) -> None:
        say_once("watch() has no effect; log a Histogram of the gradients instead")

    def finish(self, exit_code: int | None = None, **_ignored: Any) -> None:
        """Nothing more will come. A script that just ends need not say so."""
        self._on_finish(self, exit_code)

    def _tell_refused_again(self) -> None:
        for key, count in self._refused.items():
            if count:
                self._tell({"refused": {"key": clean(key), "why": "refused again", "count": count}})
                self._refused[key] = 0

    def end_file(self, exit_code: int | None) -> None:
        self._tell({"finish": {"exit_code": exit_code}})
        self.flush()

    def flush(self) -> None:
        if self._file is not None:
            self._tell_refused_again()
            self._file.close()
        elif self._alerts is not None:
            self._alerts.close()

    def mute(self) -> None:
        self._file = self._alerts = None

    def _tell(self, facts: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(fact_line({"t": round(time(), 3), **facts}))

    def _refuse(self, key: str, why: str) -> None:
        """Say what was not kept: once a key in the record, the first few also aloud."""
        shown = key if len(key) <= 100 else f"{key[:100]}… ({len(key)} characters)"
        if shown not in self._refused and len(self._refused) >= _REFUSALS:
            shown, why = "(other keys)", "refused as well"
        if shown in self._refused:
            self._refused[shown] += 1
            return
        self._refused[shown] = 0
        self._tell({"refused": {"key": clean(shown), "why": clean(why[:500])}})
        if len(self._refused) <= _SAID_ALOUD:
            say(f"{shown!r} is not logged: {why[:500]}")

    def __getattr__(self, name: str) -> Any:
        if name in OF_RUNS:
            return not_kept(name)
        raise AttributeError(f"a run of Labwright has no {name!r}")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.finish(0 if kind is None else 1)

    def __repr__(self) -> str:
        return f"<labwright run {self.id} in {self.dir}>"

    def __reduce__(self) -> Any:
        """A process that is handed the run joins it by its environment and writes a file of its own."""
        from labwright.sdk.calls import join

        return join, ()


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except Exception:  # noqa: BLE001 - a foreign type, or an int too long to print
        return type(value).__name__
