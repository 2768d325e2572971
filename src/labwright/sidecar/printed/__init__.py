"""Find metrics and progress in what a training script prints, without any configuration."""

from labwright.sidecar.printed.reader import Point, PrintedReader, Progress

__all__ = ["Point", "PrintedReader", "Progress"]
