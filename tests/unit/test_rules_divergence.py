"""Divergence: thirty healthy curves raise no alert, fifteen sick ones do."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from labwright.sidecar.rules.curves import Divergence
from labwright.sidecar.rules.inputs import Alarm, MetricPoint

Curve = Callable[[random.Random, int], float]
STEPS = 3000


def alarms(curve: Curve, seed: int, key: str = "train/loss", steps: int = STEPS) -> list[tuple[int, Alarm]]:
    rule, chance = Divergence(), random.Random(seed)
    found = ((step, rule.feed(MetricPoint(key, step, float(step), curve(chance, step)))) for step in range(steps))
    return [(step, alarm) for step, alarm in found if alarm]


def decay(start: float, end: float, pace: float) -> Curve:
    return lambda _, step: end + (start - end) * math.exp(-step / pace)


def noisy(curve: Curve, spread: float) -> Curve:
    return lambda chance, step: curve(chance, step) * math.exp(chance.gauss(0, spread))


def with_outliers(curve: Curve, share: float, size: float) -> Curve:
    return lambda chance, step: curve(chance, step) * (size if chance.random() < share else 1.0)


def warm_up(length: int, peak: float) -> Curve:
    """The learning rate rises first, and the loss with it."""
    falling = decay(peak, 0.4, 400)
    return lambda chance, step: 2.3 + (peak - 2.3) * step / length if step < length else falling(chance, step - length)


def restarts(period: int, height: float, pace: float) -> Curve:
    """Warm restarts of the learning rate throw the loss back; it falls again."""
    return lambda _, step: 0.2 + 2 * math.exp(-step / 500) + height * math.exp(-(step % period) / pace)


def waves(period: int, low: float, high: float) -> Curve:
    return lambda _, step: low + (high - low) * (0.5 + 0.5 * math.cos(2 * math.pi * step / period))


def game(period: int, swing: float, drift: float) -> Curve:
    """Two networks compete: swings of changing height, and a slow rise."""
    return lambda chance, step: (
        (1.0 + drift * step / STEPS + swing * abs(math.sin(step / period) + 0.4 * math.sin(step / period / 3.7)))
        * math.exp(chance.gauss(0, 0.3))
    )


def heavy_tailed(curve: Curve) -> Curve:
    return lambda chance, step: curve(chance, step) * (1 + 0.15 * abs(chance.gauss(0, 1) / max(0.05, chance.random())))


def epochs(length: int) -> Curve:
    """A small drop at each epoch start and a sawtooth inside it."""
    return lambda _, step: 2.0 * 0.7 ** (step // length) + 0.1 + 0.05 * (step % length) / length


HEALTHY: list[tuple[str, str, Curve]] = [
    ("noise 5 %", "loss", noisy(decay(2.3, 0.3, 300), 0.05)),
    ("noise 20 %", "loss", noisy(decay(2.3, 0.3, 300), 0.2)),
    ("noise 50 %", "loss", noisy(decay(2.3, 0.3, 300), 0.5)),
    ("noise 100 %", "loss", noisy(decay(10.8, 3.0, 500), 1.0)),
    ("batch size one", "train_loss", heavy_tailed(decay(2.3, 0.1, 300))),
    ("language model", "train/loss", noisy(decay(10.8, 3.1, 200), 0.03)),
    ("language model with spikes", "train/loss", with_outliers(noisy(decay(10.8, 3.1, 200), 0.03), 0.01, 3)),
    ("huge spikes of one point", "loss", with_outliers(noisy(decay(2.3, 0.3, 300), 0.1), 0.02, 1000)),
    ("perplexity", "val/perplexity", noisy(lambda c, s: math.exp(decay(10.8, 3.1, 200)(c, s)), 0.05)),
    ("flat", "loss", noisy(lambda _c, _s: 0.693, 0.01)),
    ("flat and exact", "loss", lambda _c, _s: 0.693),
    ("near nothing", "mse", noisy(decay(1.0, 1e-7, 100), 0.4)),
    ("negative likelihood", "nll", lambda c, s: -500 - 300 * (1 - math.exp(-s / 300)) + c.gauss(0, 20)),
    ("overfitting", "val/loss", noisy(lambda _c, s: 0.4 + 2 * math.exp(-s / 200) + 0.9 * s / STEPS, 0.05)),
    ("warm-up of 20", "loss", noisy(warm_up(20, 3.5), 0.05)),
    ("warm-up of 200", "loss", noisy(warm_up(200, 4.5), 0.05)),
    ("warm-up of 500", "loss", noisy(warm_up(500, 6.0), 0.1)),
    ("warm-up of a gradient norm", "grad_norm", noisy(lambda _c, s: 0.3 + 4 * min(1.0, s / 300), 0.4)),
    ("spiky gradient norm", "grad_norm", with_outliers(noisy(lambda _c, _s: 1.0, 0.6), 0.05, 30)),
    ("cosine restarts, small", "loss", noisy(restarts(400, 0.4, 80), 0.05)),
    ("cosine restarts, large", "loss", noisy(restarts(500, 2.0, 100), 0.05)),
    ("cosine restarts, slow", "loss", noisy(restarts(900, 1.5, 300), 0.1)),
    ("waves", "loss", noisy(waves(300, 0.5, 1.5), 0.1)),
    ("deep waves", "loss", noisy(waves(700, 0.1, 2.0), 0.1)),
    ("short waves", "loss", noisy(waves(40, 0.1, 2.0), 0.2)),
    ("saw over epochs", "loss", noisy(epochs(300), 0.1)),
    ("generator", "g_loss", game(30, 2.0, 4.0)),
    ("discriminator", "loss_D", game(50, 1.0, 0.0)),
    ("a game by a plain name", "loss", game(60, 1.5, 2.0)),
    ("wild game", "gan/loss", game(15, 5.0, 1.0)),
]


def grows_to(level: float, start: float, pace: int = 400) -> Curve:
    """A term that starts at zero and settles at its level."""
    return lambda _, step: start + (level - start) * (1 - math.exp(-step / pace))


SMALL_TERMS: list[tuple[str, str, Curve]] = [
    ("an auxiliary loss leaves zero", "aux_loss", noisy(grows_to(0.01, 0.0), 0.1)),
    ("an auxiliary loss of millionths", "aux/loss", noisy(grows_to(1e-6, 1e-8), 0.1)),
    ("a loss of codes", "vq/loss", noisy(grows_to(0.2, 0.0, 100), 0.2)),
    ("a policy loss about zero", "policy_loss", lambda chance, _: chance.gauss(0, 0.3)),
    ("a policy loss of ones", "policy_loss", lambda chance, _: chance.gauss(0, 1.0)),
    (
        "overfitting past its start",
        "val/loss",
        noisy(lambda _c, s: 0.4 + 1.5 * math.exp(-s / 200) + 3 * s / STEPS, 0.05),
    ),
]


def after(step: int, healthy: Curve, sick: Callable[[int], float]) -> Curve:
    """Sick from `step` on: multiplied by a factor."""
    return lambda chance, now: healthy(chance, now) * (sick(now - step) if now >= step else 1.0)


def instead(step: int, healthy: Curve, sick: Curve) -> Curve:
    return lambda chance, now: healthy(chance, now) if now < step else sick(chance, now - step)


FALLING = noisy(decay(2.3, 0.3, 300), 0.1)
MODEL = noisy(decay(10.8, 3.1, 200), 0.03)
SICK: list[tuple[str, str, int, Curve]] = [
    ("explodes by 10 % a step", "loss", 1000, after(1000, FALLING, lambda s: 1.1**s)),
    ("explodes by 2 % a step", "loss", 1000, after(1000, FALLING, lambda s: 1.02**s)),
    ("explodes from early on", "loss", 60, after(60, FALLING, lambda s: 1.05 ** min(s, 2000))),
    ("explodes in a noisy curve", "loss", 1500, after(1500, noisy(FALLING, 0.4), lambda s: 1.05 ** min(s, 2000))),
    ("jumps by 100", "train/loss", 800, after(800, FALLING, lambda _: 100.0)),
    ("jumps by 30 and creeps on", "loss", 2000, after(2000, FALLING, lambda s: 30 + s / 10)),
    ("back to chance", "loss", 1200, instead(1200, FALLING, noisy(lambda _c, _s: 2.303, 0.02))),
    ("back to chance early", "loss", 300, instead(300, FALLING, noisy(lambda _c, _s: 2.303, 0.02))),
    ("language model falls back", "train/loss", 1500, instead(1500, MODEL, noisy(lambda _c, _s: 7.6, 0.02))),
    (
        "language model falls back and creeps",
        "loss",
        900,
        instead(900, MODEL, noisy(lambda _c, s: 7.4 + s / 2000, 0.02)),
    ),
    ("perplexity explodes", "ppl", 700, after(700, noisy(decay(40, 12, 200), 0.05), lambda s: 1.03 ** min(s, 2000))),
    (
        "gradient norm explodes",
        "grad_norm",
        500,
        after(500, noisy(lambda _c, _s: 1.0, 0.5), lambda s: 1.1 ** min(s, 500)),
    ),
    ("error explodes", "val/error", 400, after(400, FALLING, lambda s: 1.08 ** min(s, 900))),
    ("generator lost for good", "g_loss", 1500, after(1500, game(30, 1.0, 1.0), lambda s: 1.03 ** min(s, 1000))),
    ("a flat loss takes off", "loss", 600, after(600, noisy(lambda _c, _s: 0.693, 0.02), lambda s: 1.2 ** min(s, 300))),
]


# name, key, points, where the divergence starts, curve
SLOW_OR_SHORT: list[tuple[str, str, int, int, Curve]] = [
    ("creeps up 90 times", "loss", 2500, 1000, after(1000, FALLING, lambda s: 90 ** (s / 1500))),
    ("creeps up 20 times", "loss", 7000, 1000, after(1000, FALLING, lambda s: 20 ** (s / 6000))),
    (
        "a flat loss creeps up 20 times",
        "loss",
        7000,
        1000,
        after(1000, noisy(lambda *_: 0.3, 0.05), lambda s: 20 ** (s / 6000)),
    ),
    ("35 epochs to 1e24", "loss", 35, 5, after(5, noisy(lambda *_: 2.3, 0.1), lambda s: 10 ** (24 * s / 29))),
    ("12 epochs", "val/loss", 12, 4, after(4, noisy(decay(2.3, 0.5, 3), 0.1), lambda s: 10.0**s)),
    (
        "every third point stays low",
        "loss",
        STEPS,
        1000,
        after(1000, FALLING, lambda s: 1.0 if s % 3 == 2 else 1.05 ** min(s, 900)),
    ),
    (
        "language model climbs for 100 steps and stays",
        "train/loss",
        5000,
        3000,
        noisy(lambda _c, s: decay(10.8, 3.1, 200)(_c, s) + 4.5 * min(1.0, max(0, s - 3000) / 100), 0.02),
    ),
    (
        "a negative likelihood is lost",
        "nll",
        STEPS,
        1500,
        instead(1500, lambda c, s: decay(100, -800, 300)(c, s) + c.gauss(0, 20), lambda c, _s: c.gauss(50, 5)),
    ),
    ("a cost", "cost", STEPS, 1000, after(1000, FALLING, lambda _: 100.0)),
    ("an objective", "train/objective", STEPS, 1000, after(1000, FALLING, lambda _: 100.0)),
    ("a loss with weight in its name", "loss/weight_decayed", STEPS, 1000, after(1000, FALLING, lambda _: 100.0)),
]


@pytest.mark.parametrize(("name", "key", "steps", "begins", "curve"), SLOW_OR_SHORT, ids=[c[0] for c in SLOW_OR_SHORT])
def test_a_slow_short_or_ragged_explosion_is_reported(
    name: str, key: str, steps: int, begins: int, curve: Curve
) -> None:
    for seed in range(5):
        found = alarms(curve, seed, key, steps)
        assert found and found[0][0] >= begins, f"seed {seed}"
        assert found[0][1].severity == "critical"


@pytest.mark.parametrize(("name", "key", "curve"), SMALL_TERMS, ids=[name for name, _, _ in SMALL_TERMS])
def test_a_small_rising_term_is_healthy(name: str, key: str, curve: Curve) -> None:
    for seed in range(20):
        assert alarms(curve, seed, key) == [], f"seed {seed}"


@pytest.mark.parametrize("key", ["train/value_loss", "losses/ValueLoss", "vf_loss", "actor_loss", "losses/qf1_loss"])
def test_a_loss_that_grows_with_the_rewards_is_healthy(key: str) -> None:
    for seed in range(5):
        assert alarms(noisy(lambda _c, s: 1 + 30 * min(1.0, s / 800), 0.4), seed, key) == [], f"seed {seed}"


@pytest.mark.parametrize("key", ["train/value_loss", "critic_loss", "losses/qf1_loss"])
@pytest.mark.parametrize(
    "grown",
    [
        lambda _c, s: 0.05 + 50 * min(1.0, s / 1500) ** 1.5,
        lambda _c, s: 1e-4 if s < 1000 else 0.9,
    ],
    ids=["from nearly nothing", "when the first reward is found"],
)
def test_a_loss_that_starts_without_rewards_is_healthy(key: str, grown: Curve) -> None:
    for seed in range(5):
        assert alarms(noisy(grown, 0.4), seed, key) == [], f"seed {seed}"


@pytest.mark.parametrize("zeros", [1, 4, 10, 1000])
def test_leading_zeros_do_not_start_a_loss(zeros: int) -> None:
    for seed in range(5):
        assert alarms(instead(zeros, lambda *_: 0.0, FALLING), seed) == [], f"seed {seed}"
    sick = after(1000, FALLING, lambda _: 100.0)
    assert len(alarms(instead(zeros, lambda *_: 0.0, sick), 0)) == 1


@pytest.mark.parametrize("key", ["train/value_loss", "actor_loss"])
def test_a_reward_loss_that_explodes_is_reported(key: str) -> None:
    assert len(alarms(after(1000, FALLING, lambda step: 1.05**step), 0, key)) == 1


@pytest.mark.parametrize(("name", "key", "curve"), HEALTHY, ids=[name for name, _, _ in HEALTHY])
def test_a_healthy_curve_raises_no_alarm(name: str, key: str, curve: Curve) -> None:
    for seed in range(5):
        assert alarms(curve, seed, key) == [], f"seed {seed}"


@pytest.mark.parametrize(("name", "key", "begins", "curve"), SICK, ids=[name for name, _, _, _ in SICK])
def test_a_sick_curve_raises_one_alarm(name: str, key: str, begins: int, curve: Curve) -> None:
    for seed in range(3):
        found = alarms(curve, seed, key)
        assert len(found) == 1, f"seed {seed}"
        assert begins <= found[0][0] <= begins + 500
        assert found[0][1].severity == "critical" and key in found[0][1].message


def test_there_are_thirty_healthy_and_fifteen_sick_curves() -> None:
    assert (len(HEALTHY), len(SICK)) == (30, 15)


@pytest.mark.parametrize(
    "key",
    [
        *("val/acc", "lr", "train/reward", "kl_loss", "regularization_loss", "loss/gradient_penalty"),
        *("loss_scale", "loss/scale", "loss_weight", "epoch", "vq/commit_loss", "commitment_loss", "consistency_loss"),
    ],
)
def test_only_metrics_that_should_fall_are_checked(key: str) -> None:
    assert alarms(after(1000, FALLING, lambda _: 1000.0), 0, key) == []


def test_a_curve_that_recovered_may_alarm_again() -> None:
    curve = after(1000, FALLING, lambda s: 100.0 if s < 100 else 1e5 if 1000 < s < 1100 else 1.0)
    assert [step // 1000 for step, _ in alarms(curve, 1)] == [1, 2]


@pytest.mark.parametrize("begins", [0.2, 0.75, 0.9])
@pytest.mark.parametrize("period", [80, 160, 300])
def test_a_wave_is_not_reported_at_each_crest(period: int, begins: float) -> None:
    """Its first rise may be a divergence; the next ones are known to pass."""
    wave = waves(period, 0.2, 1.8)
    for seed in range(3):
        assert len(alarms(noisy(lambda c, s: wave(c, s + int(begins * period)), 0.05), seed)) <= 1, f"seed {seed}"
