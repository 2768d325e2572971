"""YAML of a manifest: plain values, no aliases. PyYAML is large, so this module is imported on first use."""

from __future__ import annotations

from typing import Any

import yaml

# libyaml, if available, is ten times as fast, and a manifest is written often.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _PlainDumper(_DUMPER):  # type: ignore[misc]
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote text with unusual line breaks: they do not survive otherwise."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_PlainDumper.add_representer(str, _text)


def load(content: bytes) -> Any:
    """Parse YAML or raise ValueError. Aliases are refused: a few lines of them can expand beyond all memory."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, _LOADER)):
            raise ValueError("aliases are not allowed in a manifest")
        return yaml.load(content, _LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def dump(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=_PlainDumper, allow_unicode=True, sort_keys=False, width=120)
    return text.encode()
