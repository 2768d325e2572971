"""Slurm through its own commands: asking it, reading its answers, and what a run means in its words."""
