"""Programs by what they do with the words behind them: start other programs, start runs, or neither."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.agent.policy.names import word_set


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Starts the command behind its own options and so many further words."""

    with_value: frozenset[str] = frozenset()
    words: int = 0
    verbs: tuple[str, ...] = ()  # only with one of these as its first word, as in `uv run`
    may_say_run: bool = False  # `scalene run train.py` is `scalene train.py`


SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "rbash"})
WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "chronic", "unbuffer", "entr"), Wrapper()),
    **dict.fromkeys(("coproc", "busybox", "toybox", "dbus-run-session", "catchsegv", "proot", "fakeroot"), Wrapper()),
    **dict.fromkeys(("linux32", "linux64", "npx", "spawn"), Wrapper()),
    **dict.fromkeys(
        ("ld.so", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
        Wrapper(word_set("--library-path --preload --argv0 --inhibit-rpath --audit")),
    ),
    "time": Wrapper(word_set("-f -o --format --output")),
    "setarch": Wrapper(words=1),
    "chpst": Wrapper(word_set("-u -U -e -d -n -l -L -m -o -p -f -c -b -/")),
    "daemonize": Wrapper(word_set("-c -e -o -p -l -u -E")),
    **dict.fromkeys(("sudo", "doas"), Wrapper(word_set("-u -g -C -h -p -D --user --group"))),
    "exec": Wrapper(word_set("-a")),
    "nice": Wrapper(word_set("-n --adjustment")),
    "ionice": Wrapper(word_set("-c -n -p --class --classdata")),
    "chrt": Wrapper(words=1),
    "taskset": Wrapper(words=1),
    "numactl": Wrapper(word_set("-N -m -C -i -p --cpunodebind --membind --physcpubind")),
    "timeout": Wrapper(word_set("-s -k --signal --kill-after"), words=1),
    "stdbuf": Wrapper(word_set("-i -o -e --input --output --error")),
    "prlimit": Wrapper(),
    "strace": Wrapper(word_set("-o -e -p -s -E")),
    "ltrace": Wrapper(word_set("-o -e -p -s")),
    "perf": Wrapper(word_set("-o -e -F -r --repeat -c --count -C --cpu -I --call-graph"), verbs=("record", "stat")),
    "valgrind": Wrapper(),
    "watch": Wrapper(word_set("-n --interval -d")),
    "flock": Wrapper(word_set("-w -E --timeout"), words=1),
    "unshare": Wrapper(),
    "chroot": Wrapper(words=1),
    "systemd-run": Wrapper(word_set("-p -u --unit --property -E --setenv")),
    "nvprof": Wrapper(),
    "nsys": Wrapper(word_set("-o -t --trace --output"), verbs=("profile", "launch")),
    "ncu": Wrapper(
        word_set("-o --export --set --section --metrics -k --kernel-name -c --launch-count -s --launch-skip")
    ),
    "kernprof": Wrapper(word_set("-o")),
    "py-spy": Wrapper(word_set("-o -r -d -f"), verbs=("record", "top")),
    "scalene": Wrapper(word_set("-o --outfile -c --config"), may_say_run=True),
    "composer": Wrapper(word_set("-n --nproc --stdout --stderr --master_addr --master_port --node_rank --world_size")),
    "pyinstrument": Wrapper(word_set("-o --outfile -r --renderer")),
    "memray": Wrapper(word_set("-o --output"), verbs=("run",)),
    "coverage": Wrapper(word_set("--source --include --omit --rcfile --data-file --context"), verbs=("run",)),
    "rr": Wrapper(word_set("-o --output-trace-dir"), verbs=("record",)),
    "viztracer": Wrapper(word_set("-o")),
    "uv": Wrapper(word_set("--with --python -p --extra --group --env-file --project --directory"), verbs=("run",)),
    "uvx": Wrapper(word_set("--with --from --python -p")),
    "pipx": Wrapper(word_set("--spec --python"), verbs=("run",)),
    "dotenv": Wrapper(word_set("-f --file"), verbs=("run",)),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch", "rye", "pixi"), Wrapper(word_set("-e -C"), verbs=("run",))),
    **dict.fromkeys(("conda", "mamba", "micromamba"), Wrapper(word_set("-n -p --name --prefix --cwd"), verbs=("run",))),
    **dict.fromkeys(
        ("apptainer", "singularity"), Wrapper(word_set("-B --bind --env --pwd"), words=1, verbs=("exec", "run"))
    ),
    **dict.fromkeys(
        ("docker", "podman"),
        Wrapper(word_set("-v -e -w --volume --env --workdir --name --gpus -u --mount"), words=1, verbs=("run", "exec")),
    ),
    "kubectl": Wrapper(word_set("-n --namespace -c --container"), words=1, verbs=("exec", "run")),
    "ssh": Wrapper(word_set("-i -p -o -l -L -R -J -F -D"), words=1),
}
# What starts a training, an evaluation or a job, whatever comes behind it; with verbs (of a word or two) only those do.
LAUNCHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("torchrun", "deepspeed", "horovodrun", "mpirun", "mpiexec", "orterun"), ()),
    **dict.fromkeys(("srun", "sbatch", "salloc", "qsub", "bsub", "condor_submit", "papermill", "runipy"), ()),
    **dict.fromkeys(("lm_eval", "lm-eval", "axolotl", "llamafactory-cli", "evalplus", "opencompass", "torchx"), ()),
    **dict.fromkeys(("snakemake", "xvfb-run", "torch-model-archiver"), ()),
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
# With one of these they only say what they would do.
DRY: dict[str, frozenset[str]] = {
    "snakemake": word_set("-n --dry-run --dryrun --lint --list --summary --dag"),
    "dvc": word_set("--dry"),
}
LAUNCHER_MODULES = word_set(
    "torch.distributed.run torch.distributed.launch accelerate.commands.launch deepspeed.launcher.runner lm_eval "
    "papermill horovod.runner ray.scripts.scripts llamafactory.cli axolotl.cli.train"
)
# `python -m` these and the words behind them are a script again.
WRAPPER_MODULES = word_set(
    "cProfile profile pdb trace line_profiler memory_profiler kernprof scalene ipdb debugpy viztracer "
    "pyinstrument coverage IPython ipython bdb torch.utils.bottleneck"
)
HARMLESS_MODULES = word_set(
    "pip pytest unittest venv virtualenv json http py_compile compileall timeit site ensurepip black ruff mypy "
    "flake8 isort pylint build twine sphinx zipfile ast tarfile calendar platform sysconfig tokenize dis inspect "
    "doctest this pydoc uv labwright tox nox pre_commit base64 gzip sqlite3 tabnanny pyclbr pip_audit cmd"
)
INTERPRETERS = word_set("emacs perl ruby node lua Rscript R julia php awk gawk mawk tclsh")
LATER = frozenset(
    {
        "at",
        "batch",
        "tmux",
        "screen",
        "byobu",
        "zellij",
        "crontab",
        "script",
        "expect",
        "su",
        "runuser",
        "start-stop-daemon",
        "bwrap",
        "firejail",
        "hyperfine",
        "nsenter",
        "setpriv",
    }
)
ASKS = frozenset({"--help", "-h", "--version", "-V", "--usage", "--helpfull", "-help"})


def only_asks(arguments: list[str]) -> bool:
    """For help, or for a version."""
    return bool(ASKS & set(arguments))
