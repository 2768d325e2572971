"""A call of Python: `-c`, `-m`, a script or its input. The name and the syntax say whether it trains or evaluates."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labwright.agent.policy.bash import UNKNOWN
from labwright.agent.policy.names import asks_for_help, may_name_a_run, names_a_run, only_reads, words

if TYPE_CHECKING:
    from labwright.agent.policy.reader import FoundRun, Reader

Findings = Iterator["FoundRun"]
_PYTHON = re.compile(r"(?:i?python|pypy|bpython)[\d.]*|pythonw")
_CODE_OR_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*([cm])(.*)", re.DOTALL)  # `-c CODE`, `-Im MODULE`, `-mMODULE`
_DEEPEST_IMPORT = 2
_VERBS = words("train evaluate eval finetune fit pretrain")
_CODE, _INPUT = "The code", "What it reads"
_LAUNCHER_MODULES = words(
    "torch.distributed.run torch.distributed.launch accelerate.commands.launch deepspeed.launcher.runner "
    "horovod.runner ray.scripts.scripts llamafactory.cli axolotl.cli.train"
)
_PROGRAM_MODULES = words("accelerate deepspeed lm_eval papermill spacy trl wandb dvc mlflow ray jupyter rasa lightning")
# After `python -m` and one of these, a script follows.
_WRAPPER_MODULES = words(
    "cProfile profile pdb trace line_profiler memory_profiler kernprof scalene ipdb debugpy viztracer "
    "pyinstrument coverage IPython ipython bdb torch.utils.bottleneck"
)
_HARMLESS_MODULES = words(
    "pip pytest unittest venv virtualenv json http py_compile compileall timeit site ensurepip black ruff mypy "
    "flake8 isort pylint build twine sphinx zipfile ast tarfile calendar platform sysconfig tokenize dis inspect "
    "doctest this pydoc uv labwright tox nox pre_commit base64 gzip sqlite3 tabnanny pyclbr pip_audit cmd"
)


def is_python(program: str) -> bool:
    return bool(_PYTHON.fullmatch(os.path.basename(program)))


def judge(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    rest = given_words[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if match := _CODE_OR_MODULE.fullmatch(option):
            rest = [match[2], *rest] if match[2] else rest
            if match[1] == "m":
                yield from _module(reader, rest, given_words, given)
            else:
                yield from _code(reader, rest[0] if rest else "", given_words, _CODE)
            return
        if option in ("-W", "-X", "--check-hash-based-pycs"):
            rest = rest[1:]
        elif option in ("--version", "-V", "-VV", "--help", "-h"):
            return
    if rest and rest[0] not in ("-", "/dev/stdin"):
        yield from _script(reader, rest[0], rest[1:], given_words)
    elif given is not None:
        yield from _code(reader, given, given_words, _INPUT)


def _script(reader: Reader, name: str, arguments: list[str], given_words: list[str]) -> Findings:
    if asks_for_help(arguments):
        return
    text = reader.text_of(name) or reader.text_of(f"{name}/__main__.py")
    if UNKNOWN in name or text == UNKNOWN:
        yield reader.found("Only running it would show which script it runs", given_words)
    elif names_a_run(name):
        yield reader.found(f"{name} trains or evaluates, judging by its name", given_words)
    elif arguments[:1] and arguments[0] in _VERBS and not only_reads(name):
        yield reader.found(f"{name} is called with {arguments[0]}", given_words)
    elif text is None:
        if may_name_a_run(name):
            yield reader.found(f"{name} may train or evaluate, judging by its name", given_words)
    else:
        yield from _code(reader, text, given_words, name, follow=_DEEPEST_IMPORT if may_name_a_run(name) else 0)


def _module(reader: Reader, rest: list[str], given_words: list[str], given: str | None) -> Findings:
    name, *arguments = rest or [""]
    if asks_for_help(arguments):
        return
    if name in _LAUNCHER_MODULES:
        yield reader.found(f"{name} starts a job", given_words)
    elif name in _PROGRAM_MODULES:
        for found in reader.run([name, *arguments]):
            yield reader.found(found.why.rstrip("."), given_words)
    elif name == "runpy":
        yield from _module(reader, [word.removesuffix(".py") for word in arguments], given_words, given)
    elif name in _WRAPPER_MODULES:
        yield from _wrapped(reader, [word for word in arguments if word != "run"], given_words, given)
    elif name.split(".")[0] not in _HARMLESS_MODULES:
        path = name.replace(".", "/")
        place = next((p for p in _places(path) if reader.text_of(p) is not None), f"{path}.py")
        yield from _script(reader, place, arguments, given_words)


def _places(path: str) -> tuple[str, ...]:
    return f"{path}.py", f"{path}/__main__.py", f"src/{path}.py", f"src/{path}/__main__.py"


def _wrapped(reader: Reader, arguments: list[str], given_words: list[str], given: str | None) -> Findings:
    """Judge the script after the options of a profiler or a debugger."""
    for at, word in enumerate(arguments):
        if word.endswith(".py") or word in ("-m", "-c"):
            for found in judge(reader, ["python", *arguments[at:]], given):
                yield reader.found(found.why.rstrip("."), given_words)
            if word != "-c":  # pdb's -c is a debugger command; the script comes after it
                return


def _code(reader: Reader, text: str, given_words: list[str], what: str, follow: int = 0) -> Findings:
    """Judge code. `follow`: how deep the imports of the project are read: a `main.py` is often three lines."""
    if UNKNOWN in text and not text.strip(f"{UNKNOWN} \n"):
        yield reader.found(f"{what}: only running it would show what it does", given_words)
        return
    code = analyze(text.replace(UNKNOWN, "x"))
    if code.trains:
        yield reader.found(f"{what} trains or evaluates: it has {code.trains}", given_words)
        return
    for module in code.modules:
        is_own = any(reader.text_of(place) is not None for place in _places(module.replace(".", "/")))
        if is_own and names_a_run(module.rsplit(".", 1)[-1]):
            yield reader.found(f"{what} imports {module}, which trains or evaluates, judging by its name", given_words)
            return
    started = [one for shell in code.shell for one in reader.read(shell)]
    started += [one for argv in code.argvs for one in reader.run(argv)]
    started += [one for script in code.scripts for one in _script(reader, script, [], given_words)]
    for one in started[:1]:
        yield reader.found(f"{what} starts something: {one.why.rstrip('.')}", given_words)
    if follow or (what in (_CODE, _INPUT) and code.calls_main):
        for place in (place for module in dict.fromkeys(code.modules) for place in _places(module.replace(".", "/"))):
            if imported := reader.text_of(place):
                yield from _code(reader, imported, given_words, f"{what} uses {place}, which", max(follow, 1) - 1)


# What a piece of Python does, by its syntax

_STARTS_A_PROGRAM = words(
    "system popen Popen run call check_call check_output getoutput getstatusoutput spawn execv execve execvp "
    "execvpe execl execlp spawnv spawnvp spawnl spawnlp posix_spawn create_subprocess_shell "
    "create_subprocess_exec"
)
_OF_PROGRAMS = words("os subprocess sp pty asyncio commands pexpect sh")
_RUNS_CODE = words("exec eval compile run_path run_module import_module __import__")
_TRAINS = words(
    "train train_one_epoch train_epoch train_model train_loop training_loop run_training finetune fine_tune "
    "pretrain run_experiment run_sweep run_eval evaluate_model cross_val_score value_and_grad GradientTape "
    "simple_evaluate backward"
)
_FITS = words("fit fit_generator train_on_batch")
_FRAMEWORKS = words(
    "torch tensorflow keras lightning pytorch_lightning transformers jax flax xgboost trl lightgbm catboost "
    "fastai sklearn stable_baselines3 accelerate deepspeed paddle mxnet"
)
_TRACKERS = frozenset({("wandb", "init"), ("mlflow", "start_run"), ("labwright", "init"), ("trackio", "init")})
_HYPERPARAMETERS = words("--lr --epochs --learning-rate --learning_rate --max-steps --num_epochs")
_MAINS = words("main run cli launch start app")
_LINE_RUNS = re.compile(r"\.backward\(|\btrainer\.|\.fit\(|for\s+epoch\b|^\s*[!%]", re.MULTILINE)


@dataclass(slots=True)
class Code:
    trains: str = ""  # what shows that it trains
    shell: list[str] = field(default_factory=list)  # commands that it gives to a shell
    argvs: list[list[str]] = field(default_factory=list)  # programs that it starts without a shell
    scripts: list[str] = field(default_factory=list)  # files that it runs as code
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
    scripts = re.findall(r"^\s*%run\s+(\S+)", text, re.MULTILINE)
    match = None if shell or scripts else _LINE_RUNS.search(text)
    return Code(trains=match[0].strip() if match else "", shell=shell, scripts=scripts)


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
            found.argvs.append([_text(item) for item in argument.elts])
        elif said := _text(argument):
            found.shell.append(said)
    if len(node.args) > 2:
        found.argvs.append([_text(argument) for argument in node.args])


def _take_code(node: ast.Call, name: str, found: Code) -> None:
    """Strings inside of the call are code, a module or a file."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    for said in texts:
        if said.endswith(".py"):
            found.scripts.append(said)
        elif name in ("import_module", "__import__", "run_module"):
            found.modules.append(said)
        elif name in ("exec", "eval") and re.search(r"[(.\n=]", said):
            inside = analyze(said)
            found.trains = found.trains or inside.trains
            found.shell += inside.shell
            found.argvs += inside.argvs
            found.scripts += inside.scripts
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
