"""Simulates training: the loss falls to a minimum that depends on the settings and a little on the seed."""

import argparse
import json
import math
import random

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam")
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

noise = random.Random(args.seed)
floor = 0.1 + 0.2 * abs(math.log10(args.lr) + 2) + (0.15 if args.optimizer == "sgd" else 0.0) * (1 - args.momentum)
for step in range(args.steps):
    loss = floor + math.exp(-step / 5) + noise.gauss(0, 0.01)
    print(json.dumps({"step": step, "loss": round(loss, 5)}), flush=True)
