"""Values as they stand in a plan's table, and back."""

from __future__ import annotations

from labwright.planning.ir.drafts import Scalar


def write_value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def read_value(text: str, kind: str) -> Scalar:
    """By the type of the flag; a text that does not fit stays a text, and is then found by the checks."""
    try:
        if kind == "bool":
            return {"on": True, "true": True, "off": False, "false": False}[text.lower()]
        if kind == "int":
            return int(text)
        return float(text) if kind == "float" else text
    except (ValueError, KeyError):
        return text
