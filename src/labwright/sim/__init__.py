"""Simulated GPUs and a simulated Slurm: everything above them runs as on the real thing."""
