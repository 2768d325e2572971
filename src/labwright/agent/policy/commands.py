"""One simple command, by its program: launchers are runs, and what wrappers, scripts and Make start is read in turn."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labwright.agent.policy import python
from labwright.agent.policy.bash import UNKNOWN
from labwright.agent.policy.names import (
    DRY_RUN,
    LAUNCHERS,
    SHELLS,
    WRAPPERS,
    asks_for_help,
    may_name_a_run,
    names_a_run,
    word_set,
)

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Reader

Handler = Callable[["Reader", list[str], str | None], None]
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHEBANG = re.compile(r"#!.*?\b(python[\d.]*|(?:ba|da|z|k)?sh)\b")
_CRON_TIMES = re.compile(r"^\s*(?:[\d*/,-]+\s+){5}|^\s*@\w+\s+", re.MULTILINE)
_ACTIVATION = re.compile(r"(^|/)(activate[\w.]*|conda\.sh|\.\w+rc|\.?profile|\.env)$")


def judge(reader: Reader, words: list[str], given: str | None) -> None:
    """Add the runs that a command starts. `given` is what it reads on its input, or None."""
    program = os.path.basename(words[0])
    if UNKNOWN in words[0]:
        if not asks_for_help(words[1:]):
            reader.add("Only running it would show which program it starts", words)
    elif handler := _HANDLERS.get(program):
        handler(reader, words, given)
    elif python.is_python(program):
        python.judge(reader, words, given)
    elif program in WRAPPERS:
        _wrapper(reader, words, given)
    elif program in LAUNCHERS:
        _launcher(reader, words, given)
    else:
        _file(reader, words, given)


def _launcher(reader: Reader, words: list[str], _given: str | None) -> None:
    program, *arguments = words
    name = os.path.basename(program)
    if asks_for_help(arguments) or DRY_RUN.get(name, frozenset()) & set(arguments):
        return
    plain = " ".join(word for word in arguments if not word.startswith("-"))
    verb = next((verb for verb in LAUNCHERS[name] if f"{plain} ".startswith(f"{verb} ")), "")
    if verb or not LAUNCHERS[name]:
        as_run = ["bash", *_without_options(arguments)] if program == "sbatch" else words
        reader.add(f"{f'{name} {verb}'.strip()} starts a job", as_run)


def _jupyter(reader: Reader, words: list[str], given: str | None) -> None:
    if "nbconvert" not in words[1:2] and not words[0].endswith("nbconvert"):
        _launcher(reader, words, given)
    elif "--execute" in words:
        reader.add("It executes a notebook", words)


# Programs that start other commands


def _wrapper(reader: Reader, words: list[str], given: str | None) -> None:
    program, rest = os.path.basename(words[0]), [word.removeprefix("--split-string=") for word in words[1:]]
    wrapper = WRAPPERS[program]
    with_value = word_set(wrapper.options_with_value)
    if program == "command" and rest[:1] in (["-v"], ["-V"]):
        return  # it only prints where the program is
    if wrapper.verbs:
        rest = _without_options(rest[1:] if rest[:1] == ["compose"] else rest, with_value)
        if not rest or rest[0] not in wrapper.verbs:
            return
    rest = rest[1:] if rest and rest[0] in ("run", *wrapper.verbs) else rest  # also `scalene run`
    rest = _without_options(rest, with_value)
    if rest[:1] == ["-m"]:
        rest = ["python", *rest]  # `uv run -m lab.train`
    rest = rest[wrapper.words :]
    rest = list(itertools.dropwhile(lambda word: _ASSIGNMENT.match(word) or word in ("-", "--", "-c"), rest))
    if rest and " " in rest[0]:
        _text(reader, rest[0], words)
    else:
        reader.run(rest, given)


def _without_options(arguments: list[str], with_value: frozenset[str] = frozenset()) -> list[str]:
    """Return the words from the first one that is not an option. `-m` stays unless it takes another value."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        if rest[0] == "-m" and "-m" not in with_value:
            return rest
        option = rest.pop(0)
        if option == "--":
            return rest
        rest = rest[1:] if option in with_value else rest
    return rest


def _with_inputs(reader: Reader, words: list[str], given: str | None) -> None:
    """Read the command of xargs or GNU parallel with its first input, or with an unknown one."""
    at = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
    inputs = words[at + 1 :][:1] or (given or "").split()
    if not inputs or UNKNOWN in inputs:
        inputs = [UNKNOWN]
    place = next((word[2:] or after for word, after in itertools.pairwise(words) if word.startswith("-I")), "{}")
    command = [word.replace(place, inputs[0]) for word in words[:at]]
    _wrapper(reader, command if command != words[:at] else [*command, *inputs], None)


def _find(reader: Reader, words: list[str], _given: str | None) -> None:
    for at, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            command = itertools.takewhile(lambda one: one not in (";", "+"), words[at + 1 :])
            reader.run([one.replace("{}", UNKNOWN) for one in command])


def _session(reader: Reader, words: list[str], given: str | None) -> None:
    """Read the commands that tmux, at, crontab and the like start in another session or at another time."""
    if given is not None:
        reader.read(_CRON_TIMES.sub("", given.replace(UNKNOWN, "")))
    for word in words[1:]:
        if " " in word:
            reader.read(word)
    starts = (python.is_python(word) or word in LAUNCHERS or word in SHELLS for word in words)
    if (at := next((at for at, starts_here in enumerate(starts) if starts_here), 0)) > 0:
        reader.run(words[at:])


def _alias(reader: Reader, words: list[str], _given: str | None) -> None:
    for word in words[1:]:
        reader.read(word.partition("=")[2])


# Shells and scripts


def _shell(reader: Reader, words: list[str], given: str | None) -> None:
    rest, is_text = words[1:], False
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
        option = rest.pop(0)
        if option in ("--version", "--help", "-n"):
            return
        is_text = is_text or bool(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", option))
        if option in ("--rcfile", "--init-file") or re.fullmatch(r"[-+][a-zA-Z]*[oO]", option):
            rest = rest[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if is_text:
        _text(reader, rest[0] if rest else "", words)
    elif rest and rest[0] not in ("-", "/dev/stdin"):
        _script(reader, rest, words)
    elif given is not None:
        _text(reader, given, words)


def _text(reader: Reader, text: str, words: list[str]) -> None:
    if UNKNOWN in text and not text.strip(f"{UNKNOWN} \n"):
        reader.add("Only running it would show what the shell is given", words)
    else:
        reader.read(text.replace(UNKNOWN, "$unknown"))


def _script(reader: Reader, arguments: list[str], words: list[str]) -> None:
    """Judge a shell script by its content, or by its name if it cannot be read."""
    name = arguments[0]
    text = reader.text_of(name)
    if UNKNOWN in name or text == UNKNOWN:
        reader.add("Only running it would show which script it runs", words)
    elif text is not None and asks_for_help(arguments[1:]):
        return
    elif names_a_run(name) or (text is None and may_name_a_run(name)):
        reader.add(f"{name} runs an experiment, judging by its name", words)
    elif text is not None and (found := reader.first(lambda: reader.read(text))):
        reader.add(f"{name} does: {found.why}", words)


def _source(reader: Reader, words: list[str], _given: str | None) -> None:
    if len(words) > 1 and not _ACTIVATION.search(words[1]):
        _script(reader, words[1:], ["bash", *words[1:]])


def _eval(reader: Reader, words: list[str], _given: str | None) -> None:
    _text(reader, " ".join(words[1:]), words)


def _cd(reader: Reader, words: list[str], _given: str | None) -> None:
    if len(words) > 1 and UNKNOWN not in words[-1] and words[-1] != "-":
        reader.folder = reader.path(words[-1])


def _copy(reader: Reader, words: list[str], given: str | None) -> None:
    """Note what tee, cp, mv and ln write."""
    names = [word for word in words[1:] if not word.startswith("-")]
    if os.path.basename(words[0]) == "tee":
        reader.written |= {reader.path(name): given or "" for name in names}
    elif len(names) == 2 and (text := reader.text_of(names[0])) is not None:
        reader.written[reader.path(names[1])] = text


def _file(reader: Reader, words: list[str], given: str | None) -> None:
    """Judge a program by its path, or an unknown one by its name."""
    name = words[0]
    text = reader.text_of(name) if "/" in name else None
    language = _SHEBANG.match(text) if text else None
    if (language and "python" in language[1]) or (not language and name.endswith(".py")):
        python.judge(reader, ["python", *words], given)
    elif language or name.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        _script(reader, words, words)
    elif names_a_run(name) and not asks_for_help(words[1:]):
        reader.add(f"{name} trains or evaluates, judging by its name", words)


def _other_language(reader: Reader, words: list[str], _given: str | None) -> None:
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if re.search(r"\.(?:R|jl|lua|pl|rb|m?js|php)$", script) and names_a_run(script):
        reader.add(f"{script} runs an experiment, judging by its name", words)


# Make and other task runners

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_TARGET = re.compile(r"^([\w./%-]+(?:\s+[\w./%-]+)*)\s*(?:[\w=\"' ]*)?:(?![=:])\s*([^#=]*)")
_VARIABLE = re.compile(r"^(\w+)\s*[:?]?=\s*(.*)$")
_USE = re.compile(r"\$[({](\w+)[)}]")
Rules = dict[str, tuple[list[str], list[str]]]  # by target: what it depends on, and its lines


def _task(reader: Reader, words: list[str], _given: str | None) -> None:
    """Judge npm, tox and the like by the names of their targets."""
    if found := next((word for word in words[1:] if not word.startswith("-") and names_a_run(word)), None):
        reader.add(f"The target {found} runs an experiment, judging by its name", words)


def _make(reader: Reader, words: list[str], given: str | None) -> None:
    rest, targets, folder = words[1:], [], reader.folder
    names: Sequence[str] = _JUSTFILES if os.path.basename(words[0]) == "just" else _MAKEFILES
    if DRY_RUN["make"] & set(rest) or asks_for_help(rest):
        return
    while rest:
        word = rest.pop(0)
        if word in ("-f", "--file") and rest:
            names = [rest.pop(0)]
        elif word in ("-C", "--directory", "-d") and rest:
            folder = reader.path(rest.pop(0))
        elif not word.startswith("-") and not _ASSIGNMENT.match(word):
            targets.append(word)
    if any(map(names_a_run, targets)):
        _task(reader, [words[0], *targets], given)
    elif found := reader.first(lambda: reader.read(_recipe(reader, folder, names, targets))):
        reader.add(f"Its recipe does: {found.why}", words)


def _recipe(reader: Reader, folder: Path, names: Sequence[str], targets: Sequence[str]) -> str:
    """Return the lines that the targets and their dependencies would run, as shell."""
    texts = (reader.text_of(str(folder / name)) for name in names)
    rules: Rules = {}
    variables: dict[str, str] = {}
    lines: list[str] = []
    for line in (next(filter(None, texts), "")).replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and line.strip():
            lines.append(line.strip().lstrip("@-+"))
        elif variable := _VARIABLE.match(line):
            variables[variable[1]] = variable[2]
        elif target := _TARGET.match(line):
            depends, *inline = target[2].split(";")
            lines = [part for part in inline if part]
            rules |= {name: (depends.split(), lines) for name in target[1].split()}
    found = "\n".join(_lines(list(targets) or list(rules)[:1], rules, set()))
    for _ in range(3):  # variables in variables
        found = _USE.sub(lambda use: variables.get(use[1], use[0]), found)
    return found.replace("$$", "$")


def _lines(targets: Sequence[str], rules: Rules, seen: set[str]) -> Iterator[str]:
    for target in targets:
        if target in rules and target not in seen:
            seen.add(target)
            depends, lines = rules[target]
            yield from _lines(depends, rules, seen)
            yield from lines


_HANDLERS: dict[str, Handler] = {
    "eval": _eval,
    **dict.fromkeys(("source", "."), _source),
    "alias": _alias,
    **dict.fromkeys(("cd", "pushd"), _cd),
    **dict.fromkeys(("xargs", "parallel"), _with_inputs),
    "find": _find,
    **dict.fromkeys(("make", "gmake", "just"), _make),
    **dict.fromkeys(("npm", "yarn", "pnpm", "task", "invoke", "inv", "doit", "fab", "tox", "nox"), _task),
    **dict.fromkeys(("jupyter", "jupyter-nbconvert"), _jupyter),
    **dict.fromkeys(("tee", "cp", "mv", "ln"), _copy),
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(("perl", "ruby", "node", "lua", "Rscript", "R", "julia", "php"), _other_language),
    **dict.fromkeys(("at", "batch", "tmux", "screen", "byobu", "zellij", "crontab"), _session),
    **dict.fromkeys(("script", "su", "runuser", "hyperfine"), _session),
}
