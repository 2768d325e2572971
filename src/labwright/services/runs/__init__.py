"""Runs: one module per noun, one function per verb."""
