"""What the names of programs, scripts, modules and targets say about what they do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Programs

SHELLS = word_set("bash sh dash zsh ksh ash fish rbash")

# Programs that start a training, an evaluation or a job. Those with verbs do so only with one of them.
LAUNCHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("torchrun", "deepspeed", "horovodrun", "mpirun", "mpiexec", "orterun", "snakemake"), ()),
    **dict.fromkeys(("srun", "sbatch", "salloc", "qsub", "bsub", "condor_submit", "papermill", "runipy"), ()),
    **dict.fromkeys(("lm_eval", "lm-eval", "axolotl", "llamafactory-cli", "evalplus", "opencompass", "torchx"), ()),
    **dict.fromkeys(("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"), ()),
    **dict.fromkeys(("deepspeed.launcher.runner", "horovod.runner", "llamafactory.cli", "axolotl.cli.train"), ()),
    "ray.scripts.scripts": ("job submit", "submit", "exec"),
    **dict.fromkeys(("colossalai", "fabric", "guild", "mlflow", "modal", "nextflow", "tune"), ("run",)),
    "flux": ("run", "submit", "batch", "bulksubmit", "alloc", "start", "mini"),
    "accelerate": ("launch", "test"),
    "lightning": ("run", "fit", "test", "validate"),
    "trl": ("sft", "dpo", "kto", "grpo", "rloo", "env", "reward"),
    "ray": ("job submit", "submit", "exec"),
    "wandb": ("agent", "launch"),
    "dvc": ("repro", "exp run", "queue start"),
    "yolo": ("train", "val", "detect", "segment", "classify", "mode=train", "mode=val"),
    "spacy": ("train", "evaluate"),
    "rasa": ("train", "test"),
    "allennlp": ("train", "evaluate"),
    "autotrain": ("llm", "dreambooth", "text-classification"),
    "jupyter": ("execute", "run"),
    "kaggle": ("kernels push",),
    "pm2": ("start",),
    "sky": ("launch", "exec", "jobs launch"),
}
# Options with which a program only says what it would do.
DRY_RUN = {
    "snakemake": word_set("-n --dry-run --dryrun --lint --list --summary --dag"),
    "dvc": word_set("--dry --dry-run"),
    "make": word_set("-n --dry-run --just-print --list -l -q -p"),
}


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program, or a module after `python -m`, that starts the command after its own options."""

    options_with_value: str = ""
    verbs: tuple[str, ...] = ()  # it starts something only after one of these, as in `uv run`
    words: int = 0  # further words before the command, as in `timeout 60` and `ssh HOST`


_ONLY_FLAGS = (
    "nohup setsid command builtin unbuffer entr coproc npx prlimit valgrind unshare nvprof busybox firejail trap "
    "memory_profiler bdb IPython ipython torch.utils.bottleneck"
)
WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys(_ONLY_FLAGS.split(), Wrapper()),
    "env": Wrapper("-u -C --unset --chdir"),
    "time": Wrapper("-f -o --format --output"),
    **dict.fromkeys(("sudo", "doas"), Wrapper("-u -g -C -h -p -D --user --group")),
    "exec": Wrapper("-a"),
    "nice": Wrapper("-n --adjustment"),
    "ionice": Wrapper("-c -n -p --class --classdata"),
    **dict.fromkeys(("chrt", "taskset"), Wrapper(words=1)),
    "numactl": Wrapper("-N -m -C -i -p --cpunodebind --membind --physcpubind"),
    "timeout": Wrapper("-s -k --signal --kill-after", words=1),
    "stdbuf": Wrapper("-i -o -e --input --output --error"),
    **dict.fromkeys(("strace", "ltrace"), Wrapper("-o -e -p -s -E")),
    "perf": Wrapper("-o -e -F -r --repeat -c --count -C --cpu -I --call-graph", ("record", "stat")),
    "watch": Wrapper("-n --interval -d"),
    "flock": Wrapper("-w -E --timeout", words=1),
    "systemd-run": Wrapper("-p -u --unit --property -E --setenv"),
    "nsys": Wrapper("-o -t --trace --output", ("profile", "launch")),
    "ncu": Wrapper("-o --export --set --section --metrics -k --kernel-name -c --launch-count -s --launch-skip"),
    **dict.fromkeys(("kernprof", "viztracer", "cProfile", "profile", "line_profiler"), Wrapper("-o -s")),
    **dict.fromkeys(("pdb", "ipdb"), Wrapper("-c")),
    "debugpy": Wrapper("--listen --connect --log-to"),
    "trace": Wrapper("-f --file -C --coverdir"),
    "py-spy": Wrapper("-o -r -d -f", ("record", "top")),
    "scalene": Wrapper("-o --outfile -c --config"),
    "composer": Wrapper("-n --nproc --stdout --stderr --master_addr --master_port --node_rank --world_size"),
    "pyinstrument": Wrapper("-o --outfile -r --renderer"),
    "memray": Wrapper("-o --output", ("run",)),
    "coverage": Wrapper("--source --include --omit --rcfile --data-file --context", ("run",)),
    "uv": Wrapper("--with --python -p --extra --group --env-file --project --directory", ("run",)),
    "uvx": Wrapper("--with --from --python -p"),
    "pipx": Wrapper("--spec --python", ("run",)),
    "dotenv": Wrapper("-f --file", ("run",)),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch", "rye", "pixi"), Wrapper("-e -C", ("run",))),
    **dict.fromkeys(("conda", "mamba", "micromamba"), Wrapper("-n -p --name --prefix --cwd", ("run",))),
    **dict.fromkeys(("apptainer", "singularity"), Wrapper("-B --bind --env --pwd", ("exec", "run"), 1)),
    **dict.fromkeys(
        ("docker", "podman"),
        Wrapper("-v -e -w --volume --env --workdir --name --gpus -u --mount", ("run", "exec"), 1),
    ),
    "kubectl": Wrapper("-n --namespace -c --container", ("exec", "run"), 1),
    "ssh": Wrapper("-i -p -o -l -L -R -J -F -D", words=1),
    "xargs": Wrapper("-I -n -P -L -d -a -s -E --replace --max-procs --max-args --delimiter"),
    "parallel": Wrapper("-j --jobs -a -n -N --delay --joblog --colsep"),
}

# Scripts, modules and targets

_RUNS = word_set(
    "train trainer training finetune finetuning pretrain pretraining eval evaluate evaluation sweep experiment "
    "experiments distill sft dpo rlhf ppo grpo fit"
)
_MAY_RUN = word_set(
    "run main launch start benchmark bench infer inference predict test job submit exp search tune optimize "
    "rollout baseline repro reproduce all slurm"
)
_READS = word_set(
    "plot plots plotting summarize summary analyze analyse analysis report convert get download prepare check "
    "list show print inspect count merge tabulate table make visualize visualise collect clean lint format export "
    "parse compare stats view dump draw figure figures split read tests sort rename status log logs diff"
)
_HELP = word_set("--help -h --version -V --usage --helpfull -help")


def names_a_run(name: str) -> bool:
    """Return True for `train.py`, `run_eval.sh` and `pkg.finetune`, but not for `plot_training.py`."""
    parts = _parts(name)
    return not only_reads(name) and (bool(parts & _RUNS) or any(part.startswith("train") for part in parts))


def may_name_a_run(name: str) -> bool:
    """Return True for `main.py` and `run.sh`: their content decides, if it can be read."""
    is_test = re.search(r"(^|/)(tests?/|test_)", name)
    return not is_test and not only_reads(name) and bool(_parts(name) & _MAY_RUN)


def only_reads(name: str) -> bool:
    """Return True for `plot.py` and `summarize_experiments.py`."""
    return bool(_parts(name) & _READS)


def _parts(name: str) -> set[str]:
    stem = re.sub(r"\.(py|sh|bash|ipynb|sbatch|slurm|pyc|pyz)$", "", name.rsplit("/", 1)[-1])
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem)
    parts = [re.sub(r"\d+$", "", part) for part in re.split(r"[^A-Za-z0-9]+", stem.lower())]
    joined = {"".join(parts[at : at + 2]) for at in range(len(parts) - 1)}  # fine_tune, pre-train
    return {*parts, *joined} - {""}


def asks_for_help(arguments: Sequence[str]) -> bool:
    return bool(_HELP & set(arguments))
