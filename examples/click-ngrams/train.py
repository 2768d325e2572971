"""A language model of letter pairs, learned by gradient descent; click.

Prints `step=… train_loss=… val_loss=… val_ppl=…` ten times a run.
"""

from __future__ import annotations

import math
import random

import click

LETTERS = "abcdefghijklmnopqrstuvwxyz "
STARTS = ("la", "be", "wri", "tor", "mi", "sen", "do", "ka")
ENDS = ("ght", "ra", "n", "lo", "st", "me", "ver", "s")


def make_text(words: int, rng: random.Random) -> list[int]:
    text = " ".join(rng.choice(STARTS) + rng.choice(ENDS) for _ in range(words))
    return [LETTERS.index(letter) for letter in text]


def chances(row: list[float]) -> list[float]:
    powers = [math.exp(score) for score in row]
    total = sum(powers)
    return [power / total for power in powers]


def mean_loss(table: list[list[float]], text: list[int]) -> float:
    rows = [chances(row) for row in table]
    return -sum(math.log(rows[a][b]) for a, b in zip(text, text[1:])) / (len(text) - 1)


@click.command()
@click.option("--lr", "-l", type=float, default=2.0, show_default=True, help="Learning rate.")
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True)
@click.option("--smoothing", type=float, default=0.0, help="Pulls every pair towards equal chances.")
@click.option("--schedule", type=click.Choice(["constant", "linear"]), default="constant")
@click.option("--steps", "max_steps", type=int, default=1200, help="Steps of gradient descent.")
@click.option("--shuffle/--no-shuffle", default=True, help="Draw pairs at random.")
@click.option("--seed", type=int, default=0)
def main(lr: float, batch_size: int, smoothing: float, schedule: str, max_steps: int, shuffle: bool, seed: int) -> None:
    """Learn which letter follows which."""
    rng = random.Random(seed)
    training, unseen = make_text(2_000, rng), make_text(300, rng)
    table = [[0.0] * len(LETTERS) for _ in LETTERS]
    for step in range(1, max_steps + 1):
        rate = lr if schedule == "constant" else lr * (1 - (step - 1) / max_steps)
        first = (step * batch_size) % (len(training) - batch_size - 1)
        places = (
            [rng.randrange(len(training) - 1) for _ in range(batch_size)]
            if shuffle
            else range(first, first + batch_size)
        )
        for place in places:
            row = table[training[place]]
            for letter, chance in enumerate(chances(row)):
                gradient = chance - (letter == training[place + 1]) + smoothing * row[letter]
                row[letter] -= rate * gradient / batch_size
        if step % max(1, max_steps // 10) == 0 or step == max_steps:
            train_loss, val_loss = mean_loss(table, training[:3_000]), mean_loss(table, unseen)
            click.echo(
                f"step={step} train_loss={train_loss:.4f} val_loss={val_loss:.4f} val_ppl={math.exp(val_loss):.3f}"
            )


if __name__ == "__main__":
    main()
