"""YAML as a manifest has it: plain values, no aliases. Imported when a manifest is read or written, as it is large."""

from __future__ import annotations

from typing import Any

import yaml


class _PlainLoader(yaml.SafeLoader):
    """Values only. An alias is refused: a few lines of them unfold to more than a machine holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed in a manifest")
        return super().compose_node(parent, index)


class _PlainDumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Rare line breaks do not survive outside of double quotes."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_PlainDumper.add_representer(str, _text)


def load(content: bytes) -> Any:
    """Raises ValueError with what is wrong."""
    try:
        return yaml.load(content, _PlainLoader)  # noqa: S506 - a safe loader, made narrower
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def dump(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=_PlainDumper, allow_unicode=True, sort_keys=False, width=120)
    return text.encode()
