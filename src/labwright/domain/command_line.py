"""Read command lines: arguments and values, environment activation, and the parameters of a run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

_IGNORED = ("seed",)
_PLACE = r"""(?:'[^'\n]*activate'|"[^"\n]*activate"|(?:'[^'\n]*'|"[^"\n]*"|[^\s'"&;])*activate)"""
_ACTIVATES = re.compile(
    rf"(?:\s*(?:(?:source|\.)\s+{_PLACE}|(?:conda|mamba|micromamba)\s+activate\s+\S+?)\s*(?:&&|;|\n))+"
)
_LONGEST_PARSED = 20_000  # characters; shell parsing of a longer command would take minutes
_ENVIRONMENT_ERRORS = ("ModuleNotFoundError", "ImportError")
_OUTPUT = frozenset({"out", "output", "outputs", "outdir", "logdir", "savedir"})
_OUTPUT_OF = frozenset({"save", "log", "logs", "checkpoint", "ckpt", "results", "run", "exp", "experiment"})
_PLACES = frozenset({"dir", "path", "folder", "file", "to", "name", "root"})
_REMOVED = object()
_SCRIPT = re.compile(r"\.(?:py|sh|bash|ipynb|R|jl|lua)$")
_OPERATORS = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "2>", "2>&1", "<"})
Params = Mapping[str, Any]


def params_after_change(command: str, params: Mapping[str, Any], before: str) -> dict[str, Any]:
    """Return the parameters of a run whose command changed from `before` to `command`.

    Parameters that the old command shows follow the new command. Otherwise a rerun with `--lr 9` would count for the
    configuration with `--lr 0.2`. Parameters that neither command shows stay.
    """
    found = {name: _value_in(command, name, value, before) for name, value in params.items()}
    return {name: value for name, value in found.items() if value is not _REMOVED}


def _value_in(command: str, name: str, value: Any, before: str) -> Any:
    was, given = _option(before, name), _option(command, name)
    if was != given:
        return _REMOVED if given is None else _read(given)
    word = (as_text(value), None)  # a positional argument, as in `train.py 0.2`
    return _REMOVED if word in words_and_values(before) and word not in words_and_values(command) else value


def _option(command: str, name: str) -> str | None:
    """Return the value of an option as written, "" for a switch such as `--amp`, or None."""
    found = {_plain(word): value or "" for word, value in words_and_values(command) if value or word.startswith("-")}
    return found.get(_plain(name))


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _read(text: str) -> Any:
    if not text:
        return True
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if type(value) in (int, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def shape(command: str) -> tuple[str, ...]:
    """Return the command without option values, the seed and the environment activation."""
    return tuple(word for word, _ in words_and_values(command) if word.lstrip("-") not in _IGNORED)


def params_of(command: str, params: Params) -> dict[str, Any]:
    """Return the configuration without the seed: the given params, else the options of the command."""
    found = dict(params) or {word.lstrip("-"): value for word, value in words_and_values(command) if value is not None}
    return {name: _number(value) for name, value in found.items() if name not in _IGNORED}


def options_of(command: str) -> dict[str, Any]:
    """Return the options that a command gives to its scripts. They are the parameters of a run that was made by hand.

    Options before the script belong to the interpreter or the launcher. Folders for output do not distinguish two
    configurations. If a second script gets an option with another value, its name ends in `_2`.
    """
    if "-" not in command and "=" not in command:
        return {}
    options: dict[str, Any] = {}
    for script in _arguments_of_scripts(_split(command[len(activation_of(command)) :])):
        for word, value in _with_values(script):
            name = _plain(word)
            if value is None and not word.startswith("-"):
                continue  # a positional argument has no name
            if not name or is_output_option(name):
                continue
            read = _read(value or "")
            options[name if options.get(name, read) == read else f"{name}_2"] = read
    return options


def is_output_option(name: str) -> bool:
    """Return whether an option names a place for output, such as `--out-dir`, `--log_path` or `--run-name`."""
    parts = set(re.split(r"[-_.]", name.lower()))
    return bool(parts & _OUTPUT) or bool(parts & _OUTPUT_OF and parts & _PLACES)


def _arguments_of_scripts(words: list[str]) -> list[list[str]]:
    """Return the words after each script or `-m module`, up to the next command."""
    scripts: list[list[str]] = []
    current: list[str] | None = None
    for at, word in enumerate(words):
        if word in _OPERATORS:
            current = None
        elif current is None and (_SCRIPT.search(word) or (at and words[at - 1] == "-m")):
            current = []
            scripts.append(current)
        elif current is not None:
            current.append(word)
    return scripts


def activation_of(command: str) -> str:
    """Return the start of the command that activates an environment."""
    found = _ACTIVATES.match(command)
    return found.group(0) if found else ""


def may_fail_alike(kind: str, one: str, other: str) -> bool:
    """Return whether both commands would fail with this error. Import errors depend on the environment."""
    return not kind.startswith(_ENVIRONMENT_ERRORS) or activation_of(one).strip() == activation_of(other).strip()


def words_and_values(command: str) -> list[tuple[str, str | None]]:
    """Split a command into words. `--lr 0.1`, `--lr=0.1` and `lr=0.1` come with their value, other words with None."""
    return _with_values(_split(command[len(activation_of(command)) :]))


def _split(command: str) -> list[str]:
    if len(command) > _LONGEST_PARSED:
        return command.split()
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _with_values(words: list[str]) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name:
            found.append((name, value))
        elif found and found[-1][0].startswith("-") and found[-1][1] is None and not _is_option(word):
            found[-1] = (found[-1][0], word)
        else:
            found.append((word, None))
    return found


def _is_option(word: str) -> bool:
    return word.startswith("-") and not isinstance(_number(word), float)


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
