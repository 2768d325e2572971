"""The runs and sweeps that belong to a plan."""
