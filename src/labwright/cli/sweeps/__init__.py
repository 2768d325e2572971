"""Commands on sweeps."""
