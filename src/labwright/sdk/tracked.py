"""One run, as the script sees it. `log` is a hot path: one format and one write."""

from __future__ import annotations

import os
from time import monotonic, time

from labwright.sdk.held import IGNORED_RUN_METHODS, RunConfig, RunSummary, stand_in
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
_PRINTED_REFUSALS = 5
_REFUSALS = 1000
_LEVELS = {"INFO": "INFO", "WARN": "WARN", "WARNING": "WARN", "ERROR": "ERROR", "CRITICAL": "ERROR"}

_write = os.write


class AlertLevel:
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class Run:
    """The run that `init` returns. Without a file (another rank, or logging is off) every call does nothing.

    `alerts` is the file for alerts, which other ranks have too.
    """

    rank = 0
    project = group = notes = entity = job_type = ""  # as given to `init`; the last two exist for W&B only
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
        self._refused: dict[str, int] = {}  # repetitions since the last report
        self._alerted: dict[str, float] = {}

    def describe(self, labels: dict[str, Any]) -> None:
        """Store the arguments of `init`, for scripts that read them."""
        self.project, self.group, self.notes = (labels[name] or "" for name in ("project", "group", "notes"))
        self.tags = tuple(labels["tags"])

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        say_once(f"run.name = {_shown(value)} has no effect: use init(name=…)")

    @property
    def step(self) -> int:
        """The step of the next `log` without a step."""
        return self._next_step

    def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None, sync: Any = None) -> None:  # noqa: ARG002
        """Log these numbers. As in W&B, a call without a step ends the step, unless `commit=False`."""
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
        except Exception:  # noqa: BLE001 - other keys and values are handled one by one
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
        """Return the script's step as an int, or our own; None if it is not a valid step."""
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
            self._refuse("step", f"{_shown(step)} is not a whole number of 64 bits")
            return None
        with self._file.lock:
            at = self._next_step
            if commit is None or commit:
                self._next_step = at + 1
        if at > _LAST_STEP:
            self._refuse("step", f"the last possible step is {_LAST_STEP}")
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
        except Exception as error:  # noqa: BLE001 - training goes on whatever was passed in
            self._refuse("log()", f"{type(data).__name__}: {error}")

    def _pairs(self, data: Any, step: int) -> list[str]:
        """Return `"key":number` for each number. Store or refuse the other values."""
        pairs = []
        all_numbers = True
        for key, value in flattened(data):
            try:
                if value.__class__ is float or value.__class__ is int or not self._log_media(key, value, step):
                    text = number_text(value)
                    pairs.append(f"{key_text(key)}:{text}")
                    self.summary.remember(key, text)
                    continue
            except Exception as refusal:  # noqa: BLE001 - one bad value must not lose the others
                self._refuse(key, str(refusal) or type(refusal).__name__)
            all_numbers = False
        if all_numbers and len(pairs) == len(data):
            keys = tuple(data)
            has_room = len(keys) <= _TEMPLATE_KEYS and len(self._templates) < _TEMPLATES
            if has_room and all(type(key) is str for key in keys):
                self._templates[keys] = template(keys)  # the next call with these keys takes the fast way
        return pairs

    def _log_summary(self, key: str, value: Any) -> None:
        self.log({key: value}, self._next_step, commit=False)

    def _log_media(self, key: str, value: Any, step: int) -> bool:
        media = as_media(value)
        for medium in media:
            key_text(key)
            try:
                path = medium.store(self.dir, key, step)
            except NotLoggable:
                raise
            except Exception as error:  # noqa: BLE001 - a full disk, or an error of a library; training goes on
                raise NotLoggable(f"could not be stored: {error}") from None
            self._log_artifact(key, medium.kind, path, step, medium.caption)
        return bool(media)

    def _log_artifact(self, key: str, kind: str, path: str, step: int, caption: str | None = None) -> None:
        facts = {"key": clean(key), "kind": kind, "path": clean(path), "caption": plain(caption)}
        self._write_fact({"s": step, "artifact": facts})

    def _log_config(self, values: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            line = fact_line({"t": round(time(), 3), "config": plain(values)})
            if len(line) > _CONFIG_LIMIT:
                raise NotLoggable(f"{len(line)} bytes; the limit is {_CONFIG_LIMIT}")
            self._file.write(line)
        except Exception as error:  # noqa: BLE001 - a config may hold any object
            self._refuse("config", str(error))

    def alert(self, title: str, text: str = "", level: Any = "INFO", wait_duration: Any = 0) -> None:
        """Raise an alert. `wait_duration`: seconds before the same title is sent again."""
        try:
            title, now = clean(str(title)[:KEY_LIMIT]), monotonic()
            if now < self._alerted.get(title, now):
                return
            if hasattr(wait_duration, "total_seconds"):
                wait_duration = wait_duration.total_seconds()
            if len(self._alerted) < _REMEMBERED:
                self._alerted[title] = now + float(wait_duration or 0)
            level = _LEVELS.get(str(getattr(level, "value", level)).upper(), "INFO")
            body = f"{text} (rank {self.rank})".strip() if self.rank else str(text)
            if self._alerts is not None:
                alert = {"title": title, "text": plain(body), "level": level}
                self._alerts.write(fact_line({"t": round(time(), 3), "alert": alert}))
            elif self.rank:
                say_once(f"alert() of rank {self.rank} is not kept: the script does not belong to a Labwright run")
        except Exception as error:  # noqa: BLE001 - training goes on whatever was passed in
            self._refuse("alert()", str(error))

    def save(self, path: Any = None, *_ignored: Any, **_also_ignored: Any) -> None:
        """Record a file, or all files that match a pattern, as a result of this run. Files stay where they are.

        A file below `artifacts` in the run folder can be opened and downloaded on the run's page. Without a path the
        call does nothing; old W&B scripts use it so to send a new name.
        """
        if self._file is None or path is None:
            return
        try:
            import glob

            found = sorted(glob.glob(os.path.abspath(os.fspath(path))))
            if not found:
                raise NotLoggable("no such file")
            for file in found[:1000]:
                # Files of the run itself get a relative path, so that they are found after a move.
                own = file.startswith(f"{self.dir}/artifacts/")
                recorded = file[len(self.dir) + 1 :] if own else file
                self._log_artifact(os.path.basename(file), "file", recorded, self._next_step)
        except Exception as error:  # noqa: BLE001 - training goes on whatever was passed in
            self._refuse(f"save({_shown(path)})", str(error))

    def define_metric(self, *_ignored: Any, **_also_ignored: Any) -> None:
        say_once("define_metric() has no effect: every metric has a step, a time, a minimum and a maximum")

    def watch(self, *_ignored: Any, **_also_ignored: Any) -> None:
        say_once("watch() has no effect; log a Histogram of the gradients instead")

    def finish(self, exit_code: int | None = None, **_ignored: Any) -> None:
        """End logging. A script that simply ends does not need it."""
        self._on_finish(self, exit_code)

    def _write_refused_counts(self) -> None:
        for key, count in self._refused.items():
            if count:
                self._write_fact({"refused": {"key": clean(key), "why": "refused again", "count": count}})
                self._refused[key] = 0

    def end_file(self, exit_code: int | None) -> None:
        self._write_fact({"finish": {"exit_code": exit_code}})
        self.flush()

    def flush(self) -> None:
        if self._file is not None:
            self._write_refused_counts()
            self._file.close()
        elif self._alerts is not None:
            self._alerts.close()

    def mute(self) -> None:
        self._file = self._alerts = None

    def _write_fact(self, facts: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(fact_line({"t": round(time(), 3), **facts}))

    def _refuse(self, key: str, why: str) -> None:
        """Report a value that was not logged: once per key in the file, the first few also on stderr."""
        shown = key if len(key) <= 100 else f"{key[:100]}… ({len(key)} characters)"
        if shown not in self._refused and len(self._refused) >= _REFUSALS:
            shown, why = "(other keys)", "refused as well"
        if shown in self._refused:
            self._refused[shown] += 1
            return
        self._refused[shown] = 0
        self._write_fact({"refused": {"key": clean(shown), "why": clean(why[:500])}})
        if len(self._refused) <= _PRINTED_REFUSALS:
            say(f"{shown!r} is not logged: {why[:500]}")

    def __getattr__(self, name: str) -> Any:
        if name in IGNORED_RUN_METHODS:
            return stand_in(name)
        raise AttributeError(f"a Labwright run has no attribute {name!r}")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.finish(0 if kind is None else 1)

    def __repr__(self) -> str:
        return f"<labwright run {self.id} in {self.dir}>"

    def __reduce__(self) -> Any:
        """Pickle as a call of `join`: another process finds the run by its environment and writes its own file."""
        from labwright.sdk.calls import join

        return join, ()


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except Exception:  # noqa: BLE001 - a foreign type, or an int that is too long to print
        return type(value).__name__
