"""Which names mean metrics, steps, settings or times."""

from __future__ import annotations

import re
from typing import NamedTuple

METRIC, COMPANION, QUALIFIER, UNKNOWN, DENIED, STEP = "metric", "companion", "qualifier", "unknown", "denied", "step"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


METRICS = _set(
    "loss losses nll err error errors ppl perplexity mse mae rmse mape smape rmsle bpb bpc bpt wer cer ter fid"
    " kid kl kld regret ce bce xent crossentropy logloss eer hinge brier ece acc accuracy auc auroc auprc aucpr"
    " prauc rocauc f1 fscore fbeta bleu sacrebleu chrf rouge rouge1 rouge2 rougel rougelsum meteor cider spice"
    " bertscore precision recall prec rec map map50 map75 map5095 ap ap50 ap75 aps apm apl ar iou miou giou dice"
    " jaccard psnr ssim lpips r2 reward rewards return returns score scores em ndcg mrr hits hit top1 top5 acc1"
    " acc5 prec1 prec5 elbo likelihood loglik ll matthews mcc pearson spearman kappa correct sensitivity"
    " specificity cost objective energy divergence deviance quantile logprob logp f2 silhouette inertia rew"
    " winrate success las uas mos pesq stoi sdr snr mcd verlust genauigkeit perte exactitude perda perdida"
    " acuracia précision rappel pérdida precisión exactitud acurácia точность потери 损失 准确率 精度 損失 正解率"
)
_TAILED = re.compile(
    r"(?:loss|acc|accuracy|auc|f1|map|iou|ppl|nll|reward|return|rew|error|score|bleu|ndcg|recall|mse|mae)"
)
SPLITS = _set("train training trn val valid validation eval evaluation test testing dev holdout heldout ood learn")
_QUALIFIERS = SPLITS | _set(
    "ema avg average mean median best last final running smoothed smooth total overall macro micro weighted cv"
    " top k std min max sum epoch mid global value values cur current set episode episodic ep batch oof fold raw"
    " new balanced cls box obj dfl lm aux main per token in out domain squared absolute log cross binary"
    " categorical sparse root"
)
COMPANIONS = _set("lr lernrate gnorm entropy temperature epsilon sparsity gradnorm")
_COMPANION_NAMES = _set(
    "learning_rate grad_norm gradient_norm grad_norms param_norm weight_norm update_norm clip_fraction clipfrac"
    " explained_variance cur_lr base_lr current_lr approx_kl"
)
_DENIED = _set(
    "time times runtime elapsed eta sec secs second seconds ms minute minutes hour hours mem memory gpu gpus"
    " cpu vram ram size count num number nb samples sample tokens words images examples instances items iters"
    " iter iterations iteration step steps epochs batches id pid port seed version params parameters param"
    " remaining timestamp date day wall bsz wpb wps ups fps sps tps mfu flops gflops tflops tflop throughput"
    " speed rank ranks world device devices node nodes worker workers host job layers layer heads dropout"
    " momentum decay wd beta beta1 beta2 betas eps coef coeff weight weights scale type fn interval threshold"
    " thresh target smoothing patience delta every freq frequency warmup shape dim dims hidden vocab length"
    " width height stride kernel file path url config cfg args limit capacity budget duration took start started"
    " end stop support stderr shot shots fewshot line col column rows columns exp name data created gb mb kb gib"
    " mib bytes bits latency clip norm_type schedule scheduler rate_limit dt sched mom skipped version_num v"
    " build hash commit license threads processes cores pop maxlen gamma tau lambda alpha horizon range reserved"
    " allocated bucket margin init initial per_device worldsize bs ratio_clip level classes labels class nan inf"
)
STEP_RANK = {
    "global_step": 9, "num_updates": 9, "total_timesteps": 9, "globalstep": 9, "trainer_global_step": 9,
    "step": 8, "train_step": 8, "training_step": 8, "completed_step": 8, "current_step": 8, "steps": 8, "timestep": 8,
    "timesteps": 8, "update": 8, "updates": 8, "optimizer_step": 8, "env_step": 8, "env_steps": 8, "schritt": 8,
    "iteration": 7, "iter": 7, "it": 7, "train_iter": 7, "training_iteration": 7, "iters": 7, "itr": 7,
    "episode": 6, "round": 6, "trial": 6, "generation": 6, "gen": 6, "game": 6, "episodes": 6, "boosting_round": 6,
    "communication_round": 6, "server_round": 6,
    "epoch": 5, "epoche": 5, "train_epoch": 5, "training_epoch": 5, "ep": 5, "epochs": 5, "época": 5, "époque": 5,
    "epoca": 5, "epoque": 5, "эпоха": 5, "轮": 5, "e": 4, "current_epoch": 5, "test_epoch": 5, "val_epoch": 5,
    "eval_epoch": 5, "valid_epoch": 5,
    "fold": 3, "batch": 2, "minibatch": 2, "batch_idx": 2, "batches": 2,
}  # fmt: skip
EPOCH_RANK, FOLD_RANK, BATCH_RANK = 5, 3, 2
POSITION_RANK = 10  # `[3/12]` without a name: a step, but below the heading of an epoch a place inside it
_BEFORE_A_METRIC = _set("step iter iteration class sample")  # as in `step_loss`
_STOP = _set(
    "the a an is of at on with and finished got has have for in to was were reached after from improved by new"
    " we this that now so far or done completed then as it its their where when which while"
)
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_POSSESSIVE = re.compile(r"['’]s\b")
_CUTOFF = re.compile(r"^(?:p|r|h|hit|hits|recall|precision|ndcg|mrr|map|acc|prec|top|pass|f1)@\d+$", re.IGNORECASE)


class Name(NamedTuple):
    key: str
    kind: str
    split: bool = False  # the name says by itself whether it is about training, validation or test
    rank: int = 0  # of a step: the highest one in a line counts


def words_of(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_CAMEL.sub("_", _POSSESSIVE.sub("", text)).lower()))


def is_metric_word(word: str) -> bool:
    if word in METRICS or (word.endswith("s") and word[:-1] in METRICS):
        return True
    return word[-1:].isdigit() and _TAILED.match(word.rstrip("0123456789")) is not None


def name_of(text: str, *, prose: bool = False) -> Name:
    """Return what a printed name means. In prose, only its last words that belong together count."""
    text = text.strip()
    words = words_of(text)
    if not words or len(text) > 100:
        return Name("", DENIED)
    joined = "_".join(words)
    counter = "_".join(word for word in words if word not in SPLITS) if " " in text else ""
    if joined in STEP_RANK or counter in STEP_RANK:
        return Name(joined, STEP, rank=STEP_RANK.get(joined) or STEP_RANK[counter])
    if " " in text:
        words = _last_words(words, prose)
        if not words:
            return Name("", DENIED)
        joined = "_".join(words)
        if joined in STEP_RANK:
            return Name(joined, STEP, rank=STEP_RANK[joined])
    key = joined if " " in text else "_".join(re.findall(r"[\w/.]+", _POSSESSIVE.sub("", text))).strip("._/")
    split = not SPLITS.isdisjoint(words)
    if _CUTOFF.match(text.split(" ")[-1]):
        return Name(key, METRIC, split)
    if joined in _COMPANION_NAMES or words[-1] in COMPANIONS:
        return Name(key, COMPANION, split)
    if "norm" in words and ("grad" in words or "gradient" in words):
        return Name(key, COMPANION, split)
    denied = _DENIED.intersection(words)
    if is_metric_word(words[-1]):
        denied -= _BEFORE_A_METRIC
    if denied or words[-1] == "epoch":
        return Name(key, DENIED)
    if any(is_metric_word(word) for word in words):
        return Name(key, METRIC, split)
    if all(word in _QUALIFIERS for word in words):
        return Name(key, QUALIFIER, split)
    return Name(key, UNKNOWN, split)


def _last_words(words: tuple[str, ...], prose: bool) -> tuple[str, ...]:
    """Return the words after the last filler word; in prose only known words, as in `the final val loss 0.3`."""
    first = len(words)
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        if word in _STOP or (prose and not (word in _QUALIFIERS or is_metric_word(word) or word in _DENIED)):
            break
        first = index
    found = words[first:]
    if prose and not found and words[-1] not in _STOP:
        return words[-1:]
    return found if len(found) <= 6 else ()
