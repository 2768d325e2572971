"""What a plan found: `results/report.md` for people, `results.json` for machines, pictures as SVG beside them."""

from labwright.planning.results.write import write_results

__all__ = ["write_results"]
