"""Q-learning on a windy walk along a cliff; typer.

Prints one JSON object per line, with the mean return of the last episodes.
"""

from __future__ import annotations

import json
import random
from enum import Enum
from typing import Annotated

import typer

WIDTH, HEIGHT = 10, 4
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))
LONGEST = 200


class Exploration(str, Enum):
    constant = "constant"
    decay = "decay"


class Cliff:
    """A walk along a cliff, from one corner to the other. Wind may push the walker aside."""

    def __init__(self, wind: float, rng: random.Random) -> None:
        self.wind, self.rng, self.place = wind, rng, (0, 0)

    def reset(self) -> tuple[int, int]:
        self.place = (0, 0)
        return self.place

    def step(self, move: int) -> tuple[tuple[int, int], float, bool]:
        if self.rng.random() < self.wind:
            move = self.rng.randrange(len(MOVES))
        x = min(WIDTH - 1, max(0, self.place[0] + MOVES[move][1]))
        y = min(HEIGHT - 1, max(0, self.place[1] + MOVES[move][0]))
        if y == 0 and 0 < x < WIDTH - 1:
            self.place = (0, 0)
            return self.place, -100.0, False
        self.place = (x, y)
        return self.place, -1.0, self.place == (WIDTH - 1, 0)


def main(
    alpha: Annotated[float, typer.Option("--alpha", "--lr", help="Learning rate.")] = 0.3,
    gamma: Annotated[float, typer.Option(help="Discount of later rewards.")] = 0.98,
    epsilon: Annotated[float, typer.Option(help="Probability of a random move.")] = 0.1,
    exploration: Exploration = Exploration.decay,
    wind: float = 0.02,
    episodes: int = 4000,
    max_steps: Annotated[int, typer.Option(help="Stop after this many moves; 0 means no limit.")] = 0,
    double: Annotated[bool, typer.Option(help="Learn two tables to reduce overestimation.")] = False,
    seed: int = 0,
) -> None:
    """Learn to walk along the cliff."""
    rng = random.Random(seed)
    cliff = Cliff(wind, rng)
    tables = [{(x, y): [0.0] * 4 for x in range(WIDTH) for y in range(HEIGHT)} for _ in range(1 + double)]
    moves, returns = 0, []
    for episode in range(1, episodes + 1):
        rate = epsilon if exploration is Exploration.constant else epsilon * (1 - episode / episodes)
        place, done, total = cliff.reset(), False, 0.0
        for _ in range(LONGEST):
            values = [sum(values) for values in zip(*(table[place] for table in tables))]
            move = rng.randrange(4) if rng.random() < rate else values.index(max(values))
            after, reward, done = cliff.step(move)
            table = rng.choice(tables)
            other = tables[-1] if table is tables[0] else tables[0]
            best = table[after].index(max(table[after]))
            error = reward + (0.0 if done else gamma * other[after][best]) - table[place][move]
            table[place][move] += alpha * error
            place, total, moves = after, total + reward, moves + 1
            if done or moves == max_steps:
                break
        returns.append(total)
        stopped = bool(max_steps) and moves >= max_steps
        if episode % max(1, episodes // 10) == 0 or stopped:
            recent = returns[-max(1, episodes // 10) :]
            print(json.dumps({"step": moves, "mean_return": round(sum(recent) / len(recent), 3)}), flush=True)
        if stopped:
            break


if __name__ == "__main__":
    typer.run(main)
