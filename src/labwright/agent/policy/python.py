"""A call of Python: `-c`, `-m`, a script or its input. The name and the syntax say whether it trains or evaluates."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labwright.agent.policy.bash import UNKNOWN
from labwright.agent.policy.names import (
    LAUNCHERS,
    WRAPPERS,
    asks_for_help,
    may_name_a_run,
    names_a_run,
    only_reads,
    word_set,
)

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Reader

_PYTHON = re.compile(r"(?:i?python|pypy|bpython)[\d.]*|pythonw")
_CODE_OR_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*([cm])(.*)", re.DOTALL)  # `-c CODE`, `-Im MODULE`, `-mMODULE`
_DEEPEST_IMPORT = 2
_VERBS = word_set("train evaluate eval finetune fit pretrain")
_CODE, _INPUT = "The code", "What it reads"
_HARMLESS_MODULES = word_set(
    "pip pytest unittest venv virtualenv json http py_compile compileall timeit site ensurepip black ruff mypy "
    "flake8 isort pylint build twine sphinx zipfile ast tarfile calendar platform sysconfig tokenize dis inspect "
    "doctest this pydoc uv labwright tox nox pre_commit base64 gzip sqlite3 tabnanny pyclbr pip_audit cmd"
)


def is_python(program: str) -> bool:
    return bool(_PYTHON.fullmatch(os.path.basename(program)))


def judge(reader: Reader, words: list[str], given: str | None) -> None:
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if match := _CODE_OR_MODULE.fullmatch(option):
            rest = [match[2], *rest] if match[2] else rest
            if match[1] == "m":
                _module(reader, rest, words, given)
            else:
                _code(reader, rest[0] if rest else "", words, _CODE)
            return
        if option in ("-W", "-X", "--check-hash-based-pycs"):
            rest = rest[1:]
        elif option in ("--version", "-V", "-VV", "--help", "-h"):
            return
    if rest and rest[0] not in ("-", "/dev/stdin"):
        _script(reader, rest[0], rest[1:], words)
    elif given is not None:
        _code(reader, given, words, _INPUT)


def _script(reader: Reader, name: str, arguments: list[str], words: list[str]) -> None:
    if asks_for_help(arguments):
        return
    text = reader.text_of(name) or reader.text_of(f"{name}/__main__.py")
    if UNKNOWN in name or text == UNKNOWN:
        reader.add("Only running it would show which script it runs", words)
    elif names_a_run(name):
        reader.add(f"{name} trains or evaluates, judging by its name", words)
    elif arguments[:1] and arguments[0] in _VERBS and not only_reads(name):
        reader.add(f"{name} is called with {arguments[0]}", words)
    elif text is not None:
        _code(reader, text, words, name, follow=_DEEPEST_IMPORT if may_name_a_run(name) else 0)
    elif may_name_a_run(name):
        reader.add(f"{name} may train or evaluate, judging by its name", words)


def _module(reader: Reader, rest: list[str], words: list[str], given: str | None) -> None:
    name, *arguments = rest or [""]
    if name in LAUNCHERS or name in WRAPPERS:
        if found := reader.first(lambda: reader.run([name, *arguments], given)):
            reader.add(found.why, words)
    elif name == "runpy":
        _module(reader, [word.removesuffix(".py") for word in arguments], words, given)
    elif name.split(".")[0] not in _HARMLESS_MODULES:
        place = next((p for p in _places(name) if reader.text_of(p) is not None), f"{name.replace('.', '/')}.py")
        _script(reader, place, arguments, words)


def _places(module: str) -> tuple[str, ...]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__main__.py", f"src/{path}.py", f"src/{path}/__main__.py"


def _code(reader: Reader, text: str, words: list[str], what: str, follow: int = 0) -> None:
    """Judge code. `follow`: how deep the imports of the project are read: a `main.py` is often three lines."""
    if UNKNOWN in text and not text.strip(f"{UNKNOWN} \n"):
        reader.add(f"{what}: only running it would show what it does", words)
        return
    code = analyze(text.replace(UNKNOWN, "x"))
    if code.trains:
        reader.add(f"{what} trains or evaluates: it has {code.trains}", words)
        return
    for module in code.modules:
        is_own = any(reader.text_of(place) is not None for place in _places(module))
        if is_own and names_a_run(module.rsplit(".", 1)[-1]):
            reader.add(f"{what} imports {module}, which trains or evaluates, judging by its name", words)
            return
    if started := reader.first(lambda: reader.read("\n".join(code.shell))):
        reader.add(f"{what} starts something: {started.why}", words)
    if follow or (what in (_CODE, _INPUT) and code.calls_main):
        for place in (place for module in dict.fromkeys(code.modules) for place in _places(module)):
            if imported := reader.text_of(place):
                _code(reader, imported, words, f"{what} uses {place}, which", max(follow, 1) - 1)


# What a piece of Python does, by its syntax

_STARTS_A_PROGRAM = word_set(
    "system popen Popen run call check_call check_output getoutput getstatusoutput spawn execv execve execvp "
    "execvpe execl execlp spawnv spawnvp spawnl spawnlp posix_spawn create_subprocess_shell "
    "create_subprocess_exec"
)
_OF_PROGRAMS = word_set("os subprocess sp pty asyncio commands pexpect sh")
_RUNS_CODE = word_set("exec eval compile run_path run_module import_module __import__")
_TRAINS = word_set(
    "train train_one_epoch train_epoch train_model train_loop training_loop run_training finetune fine_tune "
    "pretrain run_experiment run_sweep run_eval evaluate_model cross_val_score value_and_grad GradientTape "
    "simple_evaluate backward"
)
_FITS = word_set("fit fit_generator train_on_batch")
_FRAMEWORKS = word_set(
    "torch tensorflow keras lightning pytorch_lightning transformers jax flax xgboost trl lightgbm catboost "
    "fastai sklearn stable_baselines3 accelerate deepspeed paddle mxnet"
)
_TRACKERS = frozenset({("wandb", "init"), ("mlflow", "start_run"), ("labwright", "init"), ("trackio", "init")})
_HYPERPARAMETERS = word_set("--lr --epochs --learning-rate --learning_rate --max-steps --num_epochs")
_MAINS = word_set("main run cli launch start app")
_LINE_RUNS = re.compile(r"\.backward\(|\btrainer\.|\.fit\(|for\s+epoch\b|^\s*[!%]", re.MULTILINE)


@dataclass(slots=True)
class Code:
    trains: str = ""  # what shows that it trains
    shell: list[str] = field(default_factory=list)  # the commands that it starts, as shell
    modules: list[str] = field(default_factory=list)  # imports
    calls_main: bool = False  # it calls a `main` function


def analyze(text: str) -> Code:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _by_lines(text)
    found, nodes = Code(), list(ast.walk(tree))
    found.modules = [name for node in nodes for name in _imports(node)]
    aliases = {
        alias.asname: alias.name
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    frameworks = {name.split(".")[0] for name in found.modules} & _FRAMEWORKS
    for node in nodes:
        if isinstance(node, ast.Call):
            _take_call(node, found, aliases, fits=bool(frameworks))
        elif isinstance(node, ast.For) and "epoch" in ast.unparse(node.target).lower():
            found.trains = found.trains or "a loop over epochs"
        elif isinstance(node, ast.Constant) and node.value in _HYPERPARAMETERS:
            found.trains = found.trains or f"its flag {node.value}"
    return found


def _by_lines(text: str) -> Code:
    """Judge text that is not valid Python, such as a notebook's magics, by single lines."""
    shell = re.findall(r"^\s*!\s*(.+)$", text, re.MULTILINE)
    shell += [f"python {script}" for script in re.findall(r"^\s*%run\s+(\S+)", text, re.MULTILINE)]
    match = None if shell else _LINE_RUNS.search(text)
    return Code(trains=match[0].strip() if match else "", shell=shell)


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _take_call(node: ast.Call, found: Code, aliases: dict[str, str], *, fits: bool) -> None:
    owner, name = _called(node.func, aliases)
    if name in _STARTS_A_PROGRAM and owner.split(".")[0] in _OF_PROGRAMS | {""}:
        _take_program(node, found)
    elif name in _RUNS_CODE:
        _take_code(node, name, found)
    elif sign := _training_call(owner, name, fits=fits):
        found.trains = found.trains or sign
    elif name in _MAINS:
        found.calls_main = True


def _training_call(owner: str, name: str, *, fits: bool) -> str:
    last = owner.rsplit(".", 1)[-1].lower()
    if (owner, name) in _TRACKERS:
        return f"{owner}.{name}()"
    if last.endswith("trainer") and name in ("train", "fit", "evaluate", "test", "predict", "validate"):
        return f"{owner}.{name}()"
    is_training = name in _TRAINS and not (name == "train" and owner)  # model.train() only sets a mode
    if is_training or (fits and name in _FITS) or (name == "step" and "optim" in last):
        return f"{name}()"
    return f"{owner}.{name}()" if name in ("main", "run", "cli") and names_a_run(last) else ""


def _called(func: ast.expr, aliases: dict[str, str]) -> tuple[str, str]:
    if not isinstance(func, ast.Attribute):
        return "", aliases.get(func.id, func.id) if isinstance(func, ast.Name) else ""
    inner: ast.expr = func.value
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    owner = ast.unparse(func.value) if isinstance(inner, ast.Name) else ""
    return aliases.get(owner, owner), func.attr


def _take_program(node: ast.Call, found: Code) -> None:
    for argument in node.args[:2]:
        if isinstance(argument, ast.List | ast.Tuple):
            found.shell.append(shlex.join(map(_text, argument.elts)))
        elif said := _text(argument):
            found.shell.append(said)
    if len(node.args) > 2:
        found.shell.append(shlex.join(map(_text, node.args)))


def _take_code(node: ast.Call, name: str, found: Code) -> None:
    """Strings inside of the call are code, a module or a file."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    for said in texts:
        if said.endswith(".py"):
            found.shell.append(f"python {shlex.quote(said)}")
        elif name in ("import_module", "__import__", "run_module"):
            found.modules.append(said)
        elif name in ("exec", "eval") and re.search(r"[(.\n=]", said):
            inside = analyze(said)
            found.trains = found.trains or inside.trains
            found.shell += inside.shell
            found.modules += inside.modules


def _text(node: ast.expr) -> str:
    """Return a text as far as it is written down. `sys.executable` is Python."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "python" if isinstance(node, ast.Attribute) and node.attr == "executable" else ""
