"""The version of Labwright."""

__version__ = "0.1.0"
