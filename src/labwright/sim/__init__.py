"""Simulated GPUs: a driver that answers from a file, so that everything above it runs as on a GPU machine."""
