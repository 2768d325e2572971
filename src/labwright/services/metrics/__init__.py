"""Metrics: read, write, compare, export."""
