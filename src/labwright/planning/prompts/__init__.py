"""What a language model is told at each node that asks one: a text a node, named after it. Rules need none of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROMPTS: Mapping[str, str] = {path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.md"))}
