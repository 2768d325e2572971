"""One simple command, by its program: what it starts is read in turn, and what is a run is found."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from labwright.agent.policy import embedded, git, programs, pythons, tasks
from labwright.agent.policy.names import may_name_a_run, names_a_run
from labwright.agent.policy.variables import started_by
from labwright.agent.policy.words import UNKNOWN

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

Findings = Iterator["Finding"]
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_QUOTED = re.compile(
    r"""(?:(["'`])|\bq[qwx]?\s*[({\[<|/!])((?:(?(1)(?!\1).|[^)}\]>|/!]))+)""", re.DOTALL
)  # q{…}: Perl's
_OTHER_SCRIPT = re.compile(r"\.(?:R|jl|lua|pl|rb|m?js|php|tcl)$")
_SHEBANG = re.compile(r"#!.*?\b(python[\d.]*|(?:ba|da|z|k)?sh)\b")
_STARTS = re.compile(r"\b(system|shell-command|getline|exec|spawn|popen|qx|%x|run|execSync|spawnSync|`)")
_CRON_TIMES = re.compile(r"^\s*(?:[\d*/,-]+\s+){5}|^\s*@\w+\s+", re.MULTILINE)
_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})


def judge(reader: Reader, words: list[str], given: str | None) -> Findings:
    program = os.path.basename(words[0])
    arguments = words[1:]
    if UNKNOWN in words[0]:
        if not programs.only_asks(arguments):
            yield reader.finding("Which program it starts can only be told by running it", words)
    elif handler := _HANDLERS.get(program):
        yield from handler(reader, words, given)
    elif pythons.is_python(program):
        yield from pythons.judge(reader, words, given)
    elif program in programs.WRAPPERS:
        yield from _wrapper(reader, words, given)
    elif program in programs.LAUNCHERS:
        yield from _launcher(reader, words)
    elif program in programs.SHELLS:
        yield from _shell(reader, words, given)
    elif program in programs.INTERPRETERS:
        yield from _interpreter(reader, words)
    elif program in programs.LATER:
        yield from _later(reader, words, given)
    else:
        yield from _file(reader, words, given)


def _without_options(arguments: list[str], with_value: frozenset[str]) -> list[str]:
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option in with_value:
            rest = rest[1:]
    return rest


def _wrapper(reader: Reader, words: list[str], given: str | None) -> Findings:
    program, *arguments = words
    wrapper = programs.WRAPPERS[os.path.basename(program)]
    arguments = arguments[1:] if arguments[:1] == ["compose"] else arguments
    if wrapper.verbs:
        arguments = _without_options(arguments, wrapper.with_value)
        if not arguments or arguments[0] not in wrapper.verbs:
            return
        arguments = arguments[1:]
    elif wrapper.may_say_run and arguments[:1] == ["run"]:
        arguments = arguments[1:]
    if os.path.basename(program) == "command" and arguments[:1] in (["-v"], ["-V"]):
        return  # it only asks where that is
    rest = _without_options(arguments, wrapper.with_value)[wrapper.words :]
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in ("--", "-c")):
        yield from _assigned(reader, rest.pop(0))
    if len(rest) == 1 and " " in rest[0]:
        yield from reader.read(rest[0])
    elif rest and rest[0].endswith(".py") and "/" not in rest[0]:
        yield from reader.run(["python", *rest], given)  # `uv run train.py`
    else:
        yield from reader.run(rest, given)


def _env(reader: Reader, words: list[str], given: str | None) -> Findings:
    rest = words[1:]
    while rest and (rest[0].startswith("-") or _ASSIGNMENT.match(rest[0])):
        option = rest.pop(0)
        yield from _assigned(reader, option)
        if option in ("-S", "--split-string") and rest:
            rest = [*_split(rest[0]), *rest[1:]]
        elif option.startswith(("-S", "--split-string=")):
            rest = [*_split(option.removeprefix("-S").removeprefix("--split-string=")), *rest]
        elif option in ("-u", "-C", "--unset", "--chdir"):
            rest = rest[1:]
    yield from reader.run(rest, given)


def _assigned(reader: Reader, word: str) -> Findings:
    if _ASSIGNMENT.match(word):
        name, _, value = word.partition("=")
        yield from started_by(reader, name, value)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()  # a quote that is never closed


def _launcher(reader: Reader, words: list[str]) -> Findings:
    program, *arguments = words
    name = os.path.basename(program)
    verbs = programs.LAUNCHERS[name]
    if programs.only_asks(arguments) or programs.DRY.get(name, frozenset()) & set(arguments):
        return
    plain = " ".join(word for word in arguments if not word.startswith("-"))
    verb = next((verb for verb in verbs if f"{plain} ".startswith(f"{verb} ")), "")
    if verb or not verbs:
        said = f"{name} {verb}".strip()
        as_run = ["bash", *_without_options(arguments, frozenset())] if program == "sbatch" else words
        yield reader.finding(f"{said} starts a job", as_run)


def _jupyter(reader: Reader, words: list[str], _given: str | None) -> Findings:
    if "nbconvert" in words[0:2] and "--execute" in words:
        yield reader.finding("It executes a notebook", words)
    elif "nbconvert" not in words[0:2]:
        yield from _launcher(reader, words)


def _shell(reader: Reader, words: list[str], given: str | None) -> Findings:
    rest, is_text = words[1:], False
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
        option = rest.pop(0)
        if option in ("--version", "--help", "-n"):
            return
        is_text = is_text or bool(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", option))
        if option in _SHELL_OPTIONS_WITH_VALUE or re.fullmatch(r"[-+][a-zA-Z]*[oO]", option):
            rest = rest[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if is_text:
        yield from _text(reader, rest[0] if rest else "", words)
    elif rest and rest[0] not in ("-", "/dev/stdin"):
        yield from _script(reader, rest, words)
    elif given is not None:
        yield from _text(reader, given, words)


def _text(reader: Reader, text: str, words: list[str]) -> Findings:
    if UNKNOWN in text:
        yield from (
            reader.read(text.replace(UNKNOWN, "$unknown"))
            if text.strip(f"{UNKNOWN} \n")
            else [reader.finding("What the shell is given can only be told by running it", words)]
        )
    else:
        yield from reader.read(text)


def _script(reader: Reader, arguments: list[str], words: list[str]) -> Findings:
    """A shell script: what is in it where that can be read, else its name."""
    name = arguments[0]
    text = reader.text_of(name)
    if UNKNOWN in name or text == UNKNOWN:
        yield reader.finding("Which script it runs can only be told by running it", words)
    elif text is None:
        if names_a_run(name) or may_name_a_run(name):
            yield reader.finding(f"{name} runs an experiment, by its name", words)
    elif programs.only_asks(arguments[1:]):
        return
    elif names_a_run(name):
        yield reader.finding(f"{name} runs an experiment, by its name", words)
    else:
        for found in reader.read(text):
            yield reader.finding(f"{name} does: {found.why.rstrip('.')}", words)


def _source(reader: Reader, words: list[str], _given: str | None) -> Findings:
    """An activation is no run, whatever is in it."""
    if len(words) > 1 and not re.search(r"(^|/)(activate[\w.]*|conda\.sh|\.\w+rc|\.?profile|\.env)$", words[1]):
        yield from _script(reader, words[1:], ["bash", *words[1:]])


def _eval(reader: Reader, words: list[str], _given: str | None) -> Findings:
    yield from _text(reader, " ".join(words[1:]), words)


def _trap(reader: Reader, words: list[str], _given: str | None) -> Findings:
    yield from reader.read(words[1]) if len(words) > 2 else ()


def _alias(reader: Reader, words: list[str], _given: str | None) -> Findings:
    for word in words[1:]:
        name, equals, text = word.partition("=")
        if equals:
            reader.aliases[name] = text
    yield from ()


def _cd(reader: Reader, words: list[str], _given: str | None) -> Findings:
    if len(words) > 1 and UNKNOWN not in words[-1] and words[-1] != "-":
        reader.folder = reader.path(words[-1])
    yield from ()


def _xargs(reader: Reader, words: list[str], given: str | None) -> Findings:
    place, rest = "", words[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-I", "-i", "--replace") and rest:
            place = rest.pop(0)
        elif option.startswith("-I"):
            place = option[2:]
        elif option in ("-n", "-P", "-L", "-d", "-a", "-s", "-E", "--max-procs", "--max-args", "--delimiter"):
            rest = rest[1:]
    told = given if given and UNKNOWN not in given else UNKNOWN
    if place:
        for line in told.splitlines():
            yield from reader.run([word.replace(place, line) for word in rest])
    else:
        yield from reader.run([*rest, *(told.split() or [UNKNOWN])])


def _parallel(reader: Reader, words: list[str], given: str | None) -> Findings:
    """Its command is a piece of shell, and so is each of its inputs where it has none."""
    rest = _without_options(words[1:], frozenset({"-j", "--jobs", "-a", "-n", "-N", "--delay", "--joblog", "--colsep"}))
    at = next((at for at, word in enumerate(rest) if word.startswith(":::")), len(rest))
    command, inputs = rest[:at], [word for word in rest[at:] if not word.startswith(":::")]
    inputs = inputs or (given or UNKNOWN).splitlines()
    if not command:
        for line in inputs:
            yield from _text(reader, line, words)
        return
    text = " ".join(command)
    value = inputs[0] if inputs else UNKNOWN
    filled = text.replace("{}", value) if "{" in text else f"{text} {value}"
    yield from _text(reader, filled.replace(UNKNOWN, "$unknown"), words)


def _find(reader: Reader, words: list[str], _given: str | None) -> Findings:
    yield from _on_each_file(reader, words, ("-exec", "-execdir", "-ok", "-okdir"))


def _fd(reader: Reader, words: list[str], _given: str | None) -> Findings:
    """Where its command has no place for a file, it comes last."""
    words = words if any("{}" in word for word in words) else [*words, "{}"]
    yield from _on_each_file(reader, words, ("-x", "-X", "--exec", "--exec-batch"))


def _on_each_file(reader: Reader, words: list[str], starts: tuple[str, ...]) -> Findings:
    for at, word in enumerate(words):
        if word in starts:
            rest = words[at + 1 :]
            end = next((place for place, one in enumerate(rest) if one in (";", "+")), len(rest))
            yield from reader.run([one.replace("{}", UNKNOWN) for one in rest[:end]])


def _interpreter(reader: Reader, words: list[str]) -> Findings:
    """Of other languages only what they hand to a shell, also in a script."""
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    in_script = reader.text_of(script) if _OTHER_SCRIPT.search(script) else None
    text = "\n".join([*words[1:], in_script or ""])
    if _STARTS.search(text):
        for _, said in _QUOTED.findall(text):
            yield from reader.read(said)
    if names_a_run(script) and _OTHER_SCRIPT.search(script):
        yield reader.finding(f"{script} runs an experiment, by its name", words)


def _later(reader: Reader, words: list[str], given: str | None) -> Findings:
    """What runs in another session or at another time: whatever in its words is a command by itself."""
    if given is not None:
        yield from reader.read(_CRON_TIMES.sub("", given.replace(UNKNOWN, "")))
    for word in words[1:]:
        if " " in word:
            yield from reader.read(word)
    for at in range(1, len(words)):
        if pythons.is_python(words[at]) or words[at] in programs.LAUNCHERS or words[at] in programs.SHELLS:
            yield from reader.run(words[at:])
            return


def _writes(reader: Reader, words: list[str], given: str | None) -> Findings:
    """tee, cp, mv and ln: what is where afterwards."""
    names = [word for word in words[1:] if not word.startswith("-")]
    if os.path.basename(words[0]) == "tee":
        reader.written |= {reader.path(name): given or "" for name in names}
    elif len(names) == 2 and (text := reader.text_of(names[0])) is not None:
        reader.written[reader.path(names[1])] = text
    yield from ()


def _file(reader: Reader, words: list[str], given: str | None) -> Findings:
    """A program by its path or an unknown one by its name."""
    name = words[0]
    text = reader.text_of(name) if "/" in name else None
    language = _SHEBANG.match(text) if text else None
    if language and "python" in language[1]:
        yield from pythons.judge(reader, ["python", *words], given)
    elif language or name.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        yield from _script(reader, words, words)
    elif name.endswith(".py"):
        yield from pythons.judge(reader, ["python", *words], given)
    elif names_a_run(name) and not programs.only_asks(words[1:]):
        yield reader.finding(f"{name} trains or evaluates, by its name", words)


_HANDLERS: dict[str, Callable[[Reader, list[str], str | None], Findings]] = {
    "env": _env,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    **dict.fromkeys(("cd", "pushd"), _cd),
    "xargs": _xargs,
    **dict.fromkeys(("parallel", "sem"), _parallel),
    "find": _find,
    "fd": _fd,
    **dict.fromkeys(("make", "gmake", "just"), tasks.make),
    **dict.fromkeys(("npm", "yarn", "pnpm", "task", "invoke", "inv", "doit", "fab", "tox", "nox"), tasks.by_name),
    "git": git.git,
    **dict.fromkeys(embedded.DEBUGGERS, embedded.debugger),
    "socat": embedded.socat,
    **dict.fromkeys(("jupyter", "jupyter-nbconvert"), _jupyter),
    **dict.fromkeys(("tee", "cp", "mv", "ln"), _writes),
    **dict.fromkeys(embedded.EDITORS, embedded.editor),
    **dict.fromkeys(("sed", "gsed"), embedded.sed),
    **dict.fromkeys(embedded.OPTIONS, embedded.in_options),
}
