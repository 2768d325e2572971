"""What a piece of Python would do, by its syntax alone: train or evaluate, start other programs, or run other code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from labwright.agent.policy.names import names_a_run, word_set

_STARTS_A_PROGRAM = word_set(
    "system popen Popen run call check_call check_output getoutput getstatusoutput spawn execv execve execvp "
    "execvpe execl execlp spawnv spawnvp spawnl spawnlp posix_spawn create_subprocess_shell "
    "create_subprocess_exec"
)
_OF_PROGRAMS = frozenset({"os", "subprocess", "sp", "pty", "asyncio", "commands", "pexpect", "sh"})
_RUNS_CODE = frozenset({"exec", "eval", "compile", "run_path", "run_module", "import_module", "__import__"})
_TRAINS = word_set(
    "train train_one_epoch train_epoch train_model train_loop training_loop run_training finetune fine_tune "
    "pretrain run_experiment run_sweep run_eval evaluate_model cross_val_score value_and_grad GradientTape "
    "simple_evaluate backward"
)
_FITS = frozenset({"fit", "fit_generator", "train_on_batch"})
_FRAMEWORKS = word_set(
    "torch tensorflow keras lightning pytorch_lightning transformers jax flax xgboost trl lightgbm catboost "
    "fastai sklearn stable_baselines3 accelerate deepspeed paddle mxnet"
)
_TRACKERS = frozenset({("wandb", "init"), ("mlflow", "start_run"), ("labwright", "init"), ("trackio", "init")})
_HYPERPARAMETERS = frozenset({"--lr", "--epochs", "--learning-rate", "--learning_rate", "--max-steps", "--num_epochs"})
_MAINS = frozenset({"main", "run", "cli", "launch", "start", "app"})
_LOOKS_LIKE_CODE = re.compile(r"[(.\n=]")
_LINE_RUNS = re.compile(r"\.backward\(|\btrainer\.|\.fit\(|for\s+epoch\b|^\s*[!%]", re.MULTILINE)


@dataclass(slots=True)
class Code:
    trains: str = ""  # the sign of it, in words
    shell: list[str] = field(default_factory=list)  # what it gives to a shell
    argvs: list[list[str]] = field(default_factory=list)  # what it starts without one
    scripts: list[str] = field(default_factory=list)  # files that it runs as code
    modules: list[str] = field(default_factory=list)  # what it imports
    starts_another: bool = False  # it calls the `main` of somebody


def what_it_does(text: str) -> Code:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _by_lines(text)
    found = Code()
    nodes = list(ast.walk(tree))
    found.modules = [name for node in nodes for name in _imported(node)]
    other_names = dict(pair for node in nodes for pair in _renamed(node))
    frameworks = {name.split(".")[0] for name in found.modules} & _FRAMEWORKS
    for node in nodes:
        if isinstance(node, ast.Call):
            _take_call(node, found, other_names, fits=bool(frameworks))
        elif isinstance(node, ast.For) and "epoch" in ast.unparse(node.target).lower():
            found.trains = found.trains or "a loop over epochs"
        elif isinstance(node, ast.Constant) and node.value in _HYPERPARAMETERS:
            found.trains = found.trains or f"its flag {node.value}"
    return found


def _by_lines(text: str) -> Code:
    """Of what is no Python (a notebook's magics, an older version) only what stands out."""
    shell = re.findall(r"^\s*!\s*(.+)$", text, re.MULTILINE)
    scripts = re.findall(r"^\s*%run\s+(\S+)", text, re.MULTILINE)
    match = None if shell or scripts else _LINE_RUNS.search(text)
    return Code(trains=match[0].strip() if match else "", shell=shell, scripts=scripts)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _take_call(node: ast.Call, found: Code, other_names: dict[str, str], *, fits: bool) -> None:
    owner, name = _called(node.func, other_names)
    if name in _STARTS_A_PROGRAM and owner.split(".")[0] in _OF_PROGRAMS | {""}:
        _take_program(node, found)
    elif name in _RUNS_CODE:
        _take_code(node, name, found)
    elif sign := _sign_of(owner, name, fits=fits):
        found.trains = found.trains or sign
    elif name in _MAINS:
        found.starts_another = True


def _sign_of(owner: str, name: str, *, fits: bool) -> str:
    last = owner.rsplit(".", 1)[-1].lower()
    if (owner, name) in _TRACKERS:
        return f"{owner}.{name}()"
    if last.endswith("trainer") and name in ("train", "fit", "evaluate", "test", "predict", "validate"):
        return f"{owner}.{name}()"
    is_training = name in _TRAINS and not (name == "train" and owner)  # model.train() only sets a mode
    if is_training or (fits and name in _FITS) or (name == "step" and "optim" in last):
        return f"{name}()"
    return f"{owner}.{name}()" if name in ("main", "run", "cli") and names_a_run(last) else ""


def _called(func: ast.expr, other_names: dict[str, str]) -> tuple[str, str]:
    if isinstance(func, ast.Attribute):
        owner = ast.unparse(func.value) if _is_plain(func.value) else ""
        return other_names.get(owner, owner), func.attr
    return "", other_names.get(func.id, func.id) if isinstance(func, ast.Name) else ""


def _renamed(node: ast.AST) -> Iterator[tuple[str, str]]:
    """`import os as o`, `from os import system as s`."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)


def _is_plain(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _take_program(node: ast.Call, found: Code) -> None:
    for argument in node.args[:2]:
        if isinstance(argument, ast.List | ast.Tuple):
            words = [_text(item) for item in argument.elts]
            found.argvs.append(words)
        elif said := _text(argument):
            found.shell.append(said)
    if len(node.args) > 2:
        found.argvs.append([_text(argument) for argument in node.args])


def _take_code(node: ast.Call, name: str, found: Code) -> None:
    """Strings inside of it are code, a module or a file of code, by how they look."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            said = inner.value
            if said.endswith(".py"):
                found.scripts.append(said)
            elif name in ("import_module", "__import__", "run_module"):
                found.modules.append(said)
            elif "b64decode" in ast.unparse(node):
                found.trains = found.trains or "code that is not readable"
            elif name in ("exec", "eval") and _LOOKS_LIKE_CODE.search(said):
                inside = what_it_does(said)
                found.trains = found.trains or inside.trains
                found.shell += inside.shell
                found.argvs += inside.argvs
                found.scripts += inside.scripts
                found.modules += inside.modules


def _text(node: ast.expr) -> str:
    """A text as far as it is written down; `sys.executable` is a Python too."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "python" if isinstance(node, ast.Attribute) and node.attr == "executable" else ""
