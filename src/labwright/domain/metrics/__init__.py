"""Metric series: points, how they are stored and thinned, and whether a metric is maximized or minimized."""
