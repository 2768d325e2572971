"""A call of Python: `-c`, `-m`, a script or its input, judged by name and by what is in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labwright.agent.policy import programs
from labwright.agent.policy.names import may_name_a_run, names_a_run, only_looks
from labwright.agent.policy.python_code import Code, what_it_does
from labwright.agent.policy.words import UNKNOWN

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

Findings = Iterator["Finding"]
_PYTHON = re.compile(r"(?:i?python|pypy|bpython)[\d.]*|pythonw")
_CODE_OR_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*([cm])(.*)", re.DOTALL)  # `-c CODE`, `-Im MODULE`, `-mMODULE`
_DEEPEST_IMPORT = 2
_VERBS = frozenset({"train", "evaluate", "eval", "finetune", "fit", "pretrain"})
_CODE, _READ = _GIVEN = "The code", "What it reads"


def is_python(program: str) -> bool:
    return bool(_PYTHON.fullmatch(os.path.basename(program)))


def judge(reader: Reader, words: list[str], given: str | None) -> Findings:
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if told := _CODE_OR_MODULE.fullmatch(option):
            rest = [told[2], *rest] if told[2] else rest
            if told[1] == "m":
                yield from _module(reader, rest, words, given)
            else:
                yield from _code(reader, rest[0] if rest else "", words, _CODE)
            return
        if option in ("-W", "-X", "--check-hash-based-pycs"):
            rest = rest[1:]
        elif option in ("--version", "-V", "-VV", "--help", "-h"):
            return
    if rest and rest[0] not in ("-", "/dev/stdin"):
        yield from _script(reader, rest[0], rest[1:], words)
    elif given is not None:
        yield from _code(reader, given, words, _READ)


def _script(reader: Reader, name: str, arguments: list[str], words: list[str]) -> Findings:
    if programs.only_asks(arguments):
        return
    text = reader.text_of(name) or reader.text_of(f"{name}/__main__.py")
    if UNKNOWN in name or text == UNKNOWN:
        yield reader.finding("Which script it runs can only be told by running it", words)
    elif names_a_run(name):
        yield reader.finding(f"{name} trains or evaluates, by its name", words)
    elif arguments[:1] and arguments[0] in _VERBS and not only_looks(name):
        yield reader.finding(f"{name} is told to {arguments[0]}", words)
    elif text is None:
        if may_name_a_run(name):
            yield reader.finding(f"{name} may train or evaluate, by its name", words)
    else:
        yield from _code(reader, text, words, name, follow=_DEEPEST_IMPORT if may_name_a_run(name) else 0)


def _module(reader: Reader, rest: list[str], words: list[str], given: str | None) -> Findings:
    name, *arguments = rest or [""]
    if programs.only_asks(arguments):
        return
    if name in programs.LAUNCHER_MODULES:
        yield reader.finding(f"{name} starts a job", words)
    elif name in programs.LAUNCHERS:
        for found in reader.run([name, *arguments]):
            yield reader.finding(found.why.rstrip("."), words)
    elif name == "runpy":
        yield from _module(reader, [word.removesuffix(".py") for word in arguments], words, given)
    elif name in programs.WRAPPER_MODULES:
        yield from _wrapped(reader, [word for word in arguments if word != "run"], words, given)
    elif name.split(".")[0] not in programs.HARMLESS_MODULES:
        path = name.replace(".", "/")
        place = next((p for p in _places(path) if reader.text_of(p) is not None), f"{path}.py")
        yield from _script(reader, place, arguments, words)


def _places(path: str) -> tuple[str, ...]:
    return f"{path}.py", f"{path}/__main__.py", f"src/{path}.py", f"src/{path}/__main__.py"


def _wrapped(reader: Reader, arguments: list[str], words: list[str], given: str | None) -> Findings:
    """A profiler or a debugger, and behind its options the script."""
    for at, word in enumerate(arguments):
        if word.endswith(".py") or word in ("-m", "-c"):
            for found in judge(reader, ["python", *arguments[at:]], given):
                yield reader.finding(found.why.rstrip("."), words)
            if word != "-c":  # behind pdb's is a word for the debugger, and then the script
                return


def _code(reader: Reader, text: str, words: list[str], what: str, follow: int = 0) -> Findings:
    if UNKNOWN in text and not text.strip(f"{UNKNOWN} \n"):
        yield reader.finding(f"{what} can only be told by running it", words)
        return
    code = what_it_does(text.replace(UNKNOWN, "x"))
    if code.trains:
        yield reader.finding(f"{what} trains or evaluates: it has {code.trains}", words)
    elif imported := next((name for name in code.modules if _is_own_run(reader, name)), None):
        yield reader.finding(f"{what} imports {imported}, which trains or evaluates by its name", words)
    else:
        yield from _started(reader, code, words, what)
        if follow or (what in _GIVEN and code.starts_another):
            yield from _imported(reader, code, words, what, max(follow, 1))


def _is_own_run(reader: Reader, module: str) -> bool:
    """Of the project, and named like a run; `torch.utils.…` is nobody's script."""
    path = module.replace(".", "/")
    return names_a_run(module.rsplit(".", 1)[-1]) and any(reader.text_of(place) is not None for place in _places(path))


def _started(reader: Reader, code: Code, words: list[str], what: str) -> Findings:
    """What it gives to a shell, starts, or runs as code."""
    found = [one for text in code.shell for one in reader.read(text)]
    found += [one for argv in code.argvs for one in reader.run(argv)]
    found += [one for script in code.scripts for one in _script(reader, script, [], words)]
    for one in found[:1]:
        yield reader.finding(f"{what} starts something: {one.why.rstrip('.')}", words)


def _imported(reader: Reader, code: Code, words: list[str], what: str, follow: int) -> Findings:
    """A `main.py` is often three lines, and what it imports does the work."""
    for module in dict.fromkeys(code.modules):
        for place in _places(module.replace(".", "/")):
            if text := reader.text_of(place):
                yield from _code(reader, text, words, f"{what} uses {place}, which", follow - 1)
