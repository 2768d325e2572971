"""`manifest.yaml`: what is known of a plan beside its files. Each part of Labwright owns one top-level key."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import yaml

from labwright.domain.errors import Invalid
from labwright.files import write_whole

Manifest = dict[str, Any]
CHANGING = threading.RLock()  # held from reading a manifest to having written it: its parts have several writers
_LARGEST = 4 << 20


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


def read_manifest(path: Path) -> Manifest:
    """Empty where there is none."""
    try:
        if path.stat().st_size > _LARGEST:
            raise _unreadable(path, "it is too large")
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        found = yaml.load(content, _PlainLoader)  # noqa: S506 - a safe loader, made narrower
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(path, " ".join(str(error).split()) or type(error).__name__) from error
    if not isinstance(found, dict):
        raise _unreadable(path, "it is not a mapping")
    return found


def write_manifest(path: Path, manifest: Manifest) -> None:
    text = yaml.dump(manifest, Dumper=_PlainDumper, allow_unicode=True, sort_keys=False, width=120)
    write_whole(path, text.encode())


def _unreadable(path: Path, why: str) -> Invalid:
    return Invalid(f"{path} cannot be read: {why[:200]}.", hint="Mend it by hand, or restore it from a copy.")
