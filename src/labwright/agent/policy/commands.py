"""One simple command, by its program: launchers are runs, and what wrappers, scripts and Make start is read in turn."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labwright.agent.policy import python
from labwright.agent.policy.bash import UNKNOWN
from labwright.agent.policy.names import asks_for_help, may_name_a_run, names_a_run, words

if TYPE_CHECKING:
    from labwright.agent.policy.reader import FoundRun, Reader

Findings = Iterator["FoundRun"]
Handler = Callable[["Reader", list[str], str | None], Findings]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that starts the command after its own options and `words` further words."""

    with_value: frozenset[str] = frozenset()
    words: int = 0
    verbs: tuple[str, ...] = ()  # it starts something only after one of these, as in `uv run`
    skips_run: bool = False  # `scalene run train.py` is `scalene train.py`


WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "unbuffer", "entr", "coproc", "npx"), Wrapper()),
    **dict.fromkeys(("prlimit", "valgrind", "unshare", "nvprof", "busybox", "firejail"), Wrapper()),
    "time": Wrapper(words("-f -o --format --output")),
    **dict.fromkeys(("sudo", "doas"), Wrapper(words("-u -g -C -h -p -D --user --group"))),
    "exec": Wrapper(words("-a")),
    "nice": Wrapper(words("-n --adjustment")),
    "ionice": Wrapper(words("-c -n -p --class --classdata")),
    **dict.fromkeys(("chrt", "taskset"), Wrapper(words=1)),
    "numactl": Wrapper(words("-N -m -C -i -p --cpunodebind --membind --physcpubind")),
    "timeout": Wrapper(words("-s -k --signal --kill-after"), words=1),
    "stdbuf": Wrapper(words("-i -o -e --input --output --error")),
    **dict.fromkeys(("strace", "ltrace"), Wrapper(words("-o -e -p -s -E"))),
    "perf": Wrapper(words("-o -e -F -r --repeat -c --count -C --cpu -I --call-graph"), verbs=("record", "stat")),
    "watch": Wrapper(words("-n --interval -d")),
    "flock": Wrapper(words("-w -E --timeout"), words=1),
    "systemd-run": Wrapper(words("-p -u --unit --property -E --setenv")),
    "nsys": Wrapper(words("-o -t --trace --output"), verbs=("profile", "launch")),
    "ncu": Wrapper(words("-o --export --set --section --metrics -k --kernel-name -c --launch-count -s --launch-skip")),
    **dict.fromkeys(("kernprof", "viztracer"), Wrapper(words("-o"))),
    "py-spy": Wrapper(words("-o -r -d -f"), verbs=("record", "top")),
    "scalene": Wrapper(words("-o --outfile -c --config"), skips_run=True),
    "composer": Wrapper(words("-n --nproc --stdout --stderr --master_addr --master_port --node_rank --world_size")),
    "pyinstrument": Wrapper(words("-o --outfile -r --renderer")),
    "memray": Wrapper(words("-o --output"), verbs=("run",)),
    "coverage": Wrapper(words("--source --include --omit --rcfile --data-file --context"), verbs=("run",)),
    "uv": Wrapper(words("--with --python -p --extra --group --env-file --project --directory"), verbs=("run",)),
    "uvx": Wrapper(words("--with --from --python -p")),
    "pipx": Wrapper(words("--spec --python"), verbs=("run",)),
    "dotenv": Wrapper(words("-f --file"), verbs=("run",)),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch", "rye", "pixi"), Wrapper(words("-e -C"), verbs=("run",))),
    **dict.fromkeys(("conda", "mamba", "micromamba"), Wrapper(words("-n -p --name --prefix --cwd"), verbs=("run",))),
    **dict.fromkeys(
        ("apptainer", "singularity"), Wrapper(words("-B --bind --env --pwd"), words=1, verbs=("exec", "run"))
    ),
    **dict.fromkeys(
        ("docker", "podman"),
        Wrapper(words("-v -e -w --volume --env --workdir --name --gpus -u --mount"), words=1, verbs=("run", "exec")),
    ),
    "kubectl": Wrapper(words("-n --namespace -c --container"), words=1, verbs=("exec", "run")),
    "ssh": Wrapper(words("-i -p -o -l -L -R -J -F -D"), words=1),
}
# Programs that start a training, an evaluation or a job. Those with verbs do so only with one of them.
LAUNCHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("torchrun", "deepspeed", "horovodrun", "mpirun", "mpiexec", "orterun"), ()),
    **dict.fromkeys(("srun", "sbatch", "salloc", "qsub", "bsub", "condor_submit", "papermill", "runipy"), ()),
    **dict.fromkeys(("lm_eval", "lm-eval", "axolotl", "llamafactory-cli", "evalplus", "opencompass", "torchx"), ()),
    "snakemake": (),
    "flux": ("run", "submit", "batch", "bulksubmit", "alloc", "start", "mini"),
    "accelerate": ("launch", "test"),
    "colossalai": ("run",),
    "lightning": ("run", "fit", "test", "validate"),
    "fabric": ("run",),
    "tune": ("run",),
    "trl": ("sft", "dpo", "kto", "grpo", "rloo", "env", "reward"),
    "ray": ("job submit", "submit", "exec"),
    "wandb": ("agent", "launch"),
    "mlflow": ("run",),
    "guild": ("run",),
    "dvc": ("repro", "exp run", "queue start"),
    "nextflow": ("run",),
    "yolo": ("train", "val", "detect", "segment", "classify", "mode=train", "mode=val"),
    "spacy": ("train", "evaluate"),
    "rasa": ("train", "test"),
    "allennlp": ("train", "evaluate"),
    "autotrain": ("llm", "dreambooth", "text-classification"),
    "jupyter": ("execute", "run"),
    "kaggle": ("kernels push",),
    "modal": ("run",),
    "pm2": ("start",),
    "sky": ("launch", "exec", "jobs launch"),
}
_DRY = {
    "snakemake": words("-n --dry-run --dryrun --lint --list --summary --dag"),
    "dvc": words("--dry"),
    "make": words("-n --dry-run --just-print --list -l -q -p"),
}
_SHELLS = words("bash sh dash zsh ksh ash fish rbash")
_OTHER_LANGUAGES = words("perl ruby node lua Rscript R julia php")
_SESSIONS = words("at batch tmux screen byobu zellij crontab script su runuser hyperfine")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHEBANG = re.compile(r"#!.*?\b(python[\d.]*|(?:ba|da|z|k)?sh)\b")
_CRON_TIMES = re.compile(r"^\s*(?:[\d*/,-]+\s+){5}|^\s*@\w+\s+", re.MULTILINE)
_SHELL_OPTIONS_WITH_VALUE = words("-o +o -O +O --rcfile --init-file")
_ACTIVATION = re.compile(r"(^|/)(activate[\w.]*|conda\.sh|\.\w+rc|\.?profile|\.env)$")


def judge(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    program, arguments = os.path.basename(given_words[0]), given_words[1:]
    if UNKNOWN in given_words[0]:
        if not asks_for_help(arguments):
            yield reader.found("Only running it would show which program it starts", given_words)
    elif handler := _HANDLERS.get(program):
        yield from handler(reader, given_words, given)
    elif python.is_python(program):
        yield from python.judge(reader, given_words, given)
    elif program in WRAPPERS:
        yield from _wrapper(reader, given_words, given)
    elif program in LAUNCHERS:
        yield from _launcher(reader, given_words)
    else:
        yield from _file(reader, given_words, given)


def _without_options(arguments: list[str], with_value: frozenset[str]) -> list[str]:
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option in with_value:
            rest = rest[1:]
    return rest


def _wrapper(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    program, arguments = os.path.basename(given_words[0]), given_words[1:]
    wrapper = WRAPPERS[program]
    arguments = arguments[1:] if arguments[:1] == ["compose"] else arguments
    if wrapper.verbs:
        arguments = _without_options(arguments, wrapper.with_value)
        if not arguments or arguments[0] not in wrapper.verbs:
            return
        arguments = arguments[1:]
    elif wrapper.skips_run and arguments[:1] == ["run"]:
        arguments = arguments[1:]
    if program == "command" and arguments[:1] in (["-v"], ["-V"]):
        return  # it only prints where the program is
    rest = _without_options(arguments, wrapper.with_value)[wrapper.words :]
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in ("--", "-c")):
        rest = rest[1:]
    if len(rest) == 1 and " " in rest[0]:
        yield from reader.read(rest[0])
    elif rest and rest[0].endswith(".py") and "/" not in rest[0]:
        yield from reader.run(["python", *rest], given)  # `uv run train.py`
    else:
        yield from reader.run(rest, given)


def _env(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    rest = given_words[1:]
    while rest and (rest[0].startswith("-") or _ASSIGNMENT.match(rest[0])):
        option = rest.pop(0)
        if option in ("-S", "--split-string") and rest:
            rest = [*rest[0].split(), *rest[1:]]
        elif option.startswith("--split-string="):
            rest = [*option.removeprefix("--split-string=").split(), *rest]
        elif option in ("-u", "-C", "--unset", "--chdir"):
            rest = rest[1:]
    yield from reader.run(rest, given)


def _launcher(reader: Reader, given_words: list[str]) -> Findings:
    program, *arguments = given_words
    name = os.path.basename(program)
    verbs = LAUNCHERS[name]
    if asks_for_help(arguments) or _DRY.get(name, frozenset()) & set(arguments):
        return
    plain = " ".join(word for word in arguments if not word.startswith("-"))
    verb = next((verb for verb in verbs if f"{plain} ".startswith(f"{verb} ")), "")
    if verb or not verbs:
        as_run = ["bash", *_without_options(arguments, frozenset())] if program == "sbatch" else given_words
        yield reader.found(f"{f'{name} {verb}'.strip()} starts a job", as_run)


def _jupyter(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    if "nbconvert" in given_words[1:2] or given_words[0].endswith("nbconvert"):
        if "--execute" in given_words:
            yield reader.found("It executes a notebook", given_words)
    else:
        yield from _launcher(reader, given_words)


def _shell(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    rest, is_text = given_words[1:], False
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
        option = rest.pop(0)
        if option in ("--version", "--help", "-n"):
            return
        is_text = is_text or bool(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", option))
        if option in _SHELL_OPTIONS_WITH_VALUE or re.fullmatch(r"[-+][a-zA-Z]*[oO]", option):
            rest = rest[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if is_text:
        yield from _text(reader, rest[0] if rest else "", given_words)
    elif rest and rest[0] not in ("-", "/dev/stdin"):
        yield from _script(reader, rest, given_words)
    elif given is not None:
        yield from _text(reader, given, given_words)


def _text(reader: Reader, text: str, given_words: list[str]) -> Findings:
    if UNKNOWN in text and not text.strip(f"{UNKNOWN} \n"):
        yield reader.found("Only running it would show what the shell is given", given_words)
    else:
        yield from reader.read(text.replace(UNKNOWN, "$unknown"))


def _script(reader: Reader, arguments: list[str], given_words: list[str]) -> Findings:
    """Judge a shell script by its content, or by its name if it cannot be read."""
    name = arguments[0]
    text = reader.text_of(name)
    if UNKNOWN in name or text == UNKNOWN:
        yield reader.found("Only running it would show which script it runs", given_words)
    elif text is None:
        if names_a_run(name) or may_name_a_run(name):
            yield reader.found(f"{name} runs an experiment, judging by its name", given_words)
    elif asks_for_help(arguments[1:]):
        return
    elif names_a_run(name):
        yield reader.found(f"{name} runs an experiment, judging by its name", given_words)
    else:
        for found in reader.read(text):
            yield reader.found(f"{name} does: {found.why.rstrip('.')}", given_words)


def _source(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    if len(given_words) > 1 and not _ACTIVATION.search(given_words[1]):
        yield from _script(reader, given_words[1:], ["bash", *given_words[1:]])


def _eval(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    yield from _text(reader, " ".join(given_words[1:]), given_words)


def _trap(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    yield from reader.read(given_words[1]) if len(given_words) > 2 else ()


def _alias(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    for word in given_words[1:]:
        yield from reader.read(word.partition("=")[2])


def _cd(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    if len(given_words) > 1 and UNKNOWN not in given_words[-1] and given_words[-1] != "-":
        reader.folder = reader.path(given_words[-1])
    yield from ()


def _xargs(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    place, rest = "", given_words[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-I", "-i", "--replace") and rest:
            place = rest.pop(0)
        elif option in ("-n", "-P", "-L", "-d", "-a", "-s", "-E", "--max-procs", "--max-args", "--delimiter"):
            rest = rest[1:]
        place = option[2:] or place if option.startswith("-I") else place
    known = given if given and UNKNOWN not in given else UNKNOWN
    if place:
        for line in known.splitlines():
            yield from reader.run([word.replace(place, line) for word in rest])
    else:
        yield from reader.run([*rest, *(known.split() or [UNKNOWN])])


def _parallel(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    """Read GNU parallel's command, or each input if there is no command."""
    rest = _without_options(given_words[1:], words("-j --jobs -a -n -N --delay --joblog --colsep"))
    at = next((at for at, word in enumerate(rest) if word.startswith(":::")), len(rest))
    command, inputs = rest[:at], [word for word in rest[at:] if not word.startswith(":::")]
    inputs = inputs or (given or UNKNOWN).splitlines()
    if not command:
        for line in inputs:
            yield from _text(reader, line, given_words)
        return
    text, value = " ".join(command), inputs[0] if inputs else UNKNOWN
    filled = text.replace("{}", value) if "{" in text else f"{text} {value}"
    yield from _text(reader, filled.replace(UNKNOWN, "$unknown"), given_words)


def _find(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    for at, word in enumerate(given_words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = given_words[at + 1 :]
            end = next((place for place, one in enumerate(rest) if one in (";", "+")), len(rest))
            yield from reader.run([one.replace("{}", UNKNOWN) for one in rest[:end]])


def _other_language(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    script = next((word for word in given_words[1:] if not word.startswith("-")), "")
    if re.search(r"\.(?:R|jl|lua|pl|rb|m?js|php)$", script) and names_a_run(script):
        yield reader.found(f"{script} runs an experiment, judging by its name", given_words)


def _session(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    """Read the commands that tmux, at, crontab and the like start in another session or at another time."""
    if given is not None:
        yield from reader.read(_CRON_TIMES.sub("", given.replace(UNKNOWN, "")))
    for word in given_words[1:]:
        if " " in word:
            yield from reader.read(word)
    for at in range(1, len(given_words)):
        word = given_words[at]
        if python.is_python(word) or word in LAUNCHERS or word in _SHELLS:
            yield from reader.run(given_words[at:])
            return


def _copy(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    """Note what tee, cp, mv and ln write."""
    names = [word for word in given_words[1:] if not word.startswith("-")]
    if os.path.basename(given_words[0]) == "tee":
        reader.written |= {reader.path(name): given or "" for name in names}
    elif len(names) == 2 and (text := reader.text_of(names[0])) is not None:
        reader.written[reader.path(names[1])] = text
    yield from ()


def _file(reader: Reader, given_words: list[str], given: str | None) -> Findings:
    """Judge a program by its path, or an unknown one by its name."""
    name = given_words[0]
    text = reader.text_of(name) if "/" in name else None
    language = _SHEBANG.match(text) if text else None
    if (language and "python" in language[1]) or (not language and name.endswith(".py")):
        yield from python.judge(reader, ["python", *given_words], given)
    elif language or name.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        yield from _script(reader, given_words, given_words)
    elif names_a_run(name) and not asks_for_help(given_words[1:]):
        yield reader.found(f"{name} trains or evaluates, judging by its name", given_words)


# Make and other task runners

_FILES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile", ".justfile")}
_TARGET = re.compile(r"^([\w./%-]+(?:\s+[\w./%-]+)*)\s*(?:[\w=\"' ]*)?:(?![=:])\s*([^#=]*)")
_VARIABLE = re.compile(r"^(\w+)\s*[:?]?=\s*(.*)$")
_USE = re.compile(r"\$[({](\w+)[)}]")
Rules = dict[str, tuple[list[str], list[str]]]  # by target: what it depends on, and its lines


def _make(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    rest, targets, named, folder = given_words[1:], [], None, reader.folder
    if _DRY["make"] & set(rest) or asks_for_help(rest):
        return
    while rest:
        word = rest.pop(0)
        if word in ("-f", "--file") and rest:
            named = rest.pop(0)
        elif word in ("-C", "--directory", "-d") and rest:
            folder = reader.path(rest.pop(0))
        elif not word.startswith("-") and not _ASSIGNMENT.match(word):
            targets.append(word)
    if found := next((target for target in targets if names_a_run(target)), None):
        yield reader.found(f"The target {found} runs an experiment, judging by its name", given_words)
        return
    program = "just" if os.path.basename(given_words[0]) == "just" else "make"
    for one in reader.read(_recipe(reader, folder, (named,) if named else _FILES[program], targets)):
        yield reader.found(f"Its recipe does: {one.why.rstrip('.')}", given_words)


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


def _task(reader: Reader, given_words: list[str], _given: str | None) -> Findings:
    """Judge npm, tox and the like by the names of their targets."""
    if found := next((word for word in given_words[1:] if not word.startswith("-") and names_a_run(word)), None):
        yield reader.found(f"The target {found} runs an experiment, judging by its name", given_words)


_HANDLERS: dict[str, Handler] = {
    "env": _env,
    "eval": _eval,
    **dict.fromkeys(("source", "."), _source),
    "trap": _trap,
    "alias": _alias,
    **dict.fromkeys(("cd", "pushd"), _cd),
    "xargs": _xargs,
    "parallel": _parallel,
    "find": _find,
    **dict.fromkeys(("make", "gmake", "just"), _make),
    **dict.fromkeys(("npm", "yarn", "pnpm", "task", "invoke", "inv", "doit", "fab", "tox", "nox"), _task),
    **dict.fromkeys(("jupyter", "jupyter-nbconvert"), _jupyter),
    **dict.fromkeys(("tee", "cp", "mv", "ln"), _copy),
    **dict.fromkeys(_SHELLS, _shell),
    **dict.fromkeys(_OTHER_LANGUAGES, _other_language),
    **dict.fromkeys(_SESSIONS, _session),
}
