# Fits a noisy curve with a polynomial, by gradient descent. No functions, no parser: change a number, run it again.
# The most common ones can also be set from outside: LR=0.5 MAX_STEPS=100 python fit.py

import math
import os
import random

LR = float(os.environ.get("LR", "0.1"))
DEGREE = int(os.environ.get("DEGREE", "5"))
RIDGE = float(os.environ.get("RIDGE", "0"))
MAX_STEPS = int(os.environ.get("MAX_STEPS", "1500"))
SEED = int(os.environ.get("SEED", "0"))
POINTS = 80
NOISE = 0.15

rng = random.Random(SEED)
xs = [rng.uniform(-1, 1) for _ in range(2 * POINTS)]
ys = [math.sin(3 * x) + rng.gauss(0, NOISE) for x in xs]
rows = [[math.cos(power * math.acos(x)) for power in range(DEGREE + 1)] for x in xs]
weights = [0.0] * (DEGREE + 1)

for step in range(1, MAX_STEPS + 1):
    errors = [sum(w * v for w, v in zip(weights, row)) - y for row, y in zip(rows[:POINTS], ys)]
    for power in range(DEGREE + 1):
        gradient = sum(error * row[power] for error, row in zip(errors, rows)) / POINTS
        weights[power] -= LR * (gradient + RIDGE * weights[power])
    if step % max(1, MAX_STEPS // 10) == 0 or step == MAX_STEPS:
        train_mse = sum(error * error for error in errors) / POINTS
        unseen = [sum(w * v for w, v in zip(weights, row)) - y for row, y in zip(rows[POINTS:], ys[POINTS:])]
        test_mse = sum(error * error for error in unseen) / POINTS
        print(f"step {step}: train_mse={train_mse:.5f} test_mse={test_mse:.5f}", flush=True)
