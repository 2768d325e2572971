"""YAML as a manifest has it: plain values, no aliases. Imported when a manifest is read or written, as it is large."""

from __future__ import annotations

from typing import Any

import yaml

# By libyaml where it is there: ten times as fast, and a plan's manifest is written often.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _PlainDumper(_DUMPER):  # type: ignore[misc]
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Rare line breaks do not survive outside of double quotes."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_PlainDumper.add_representer(str, _text)


def load(content: bytes) -> Any:
    """Raises ValueError with what is wrong. An alias is: a few lines of them unfold to more than a machine holds."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, _LOADER)):
            raise ValueError("aliases are not allowed in a manifest")
        return yaml.load(content, _LOADER)  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def dump(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=_PlainDumper, allow_unicode=True, sort_keys=False, width=120)
    return text.encode()
