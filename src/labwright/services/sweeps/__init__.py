"""Sweeps: their verbs, how they are planned, and the worker that advances them."""
