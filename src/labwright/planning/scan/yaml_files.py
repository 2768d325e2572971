"""YAML as plain values, within limits: no tags, no aliases that grow a small file into a huge one."""

from __future__ import annotations

from typing import Any

from labwright.planning.scan.walk import Tree

_LONGEST = 200_000


def read_yaml(tree: Tree, path: str) -> Any:
    """The file's content, or None with the reason among the skipped."""
    import yaml

    text = tree.read(path)
    if text is None:
        return None
    if len(text) > _LONGEST:
        tree.skip(path, "too long for a configuration")
        return None
    try:
        # Aliases can multiply (ten levels of ten are 10 GB), and configurations do not need them.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            tree.skip(path, "YAML with aliases is not read")
            return None
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        tree.skip(path, f"not plain YAML: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        return None


def leaves(value: Any, prefix: str = "", depth: int = 0) -> list[tuple[str, Any]]:
    """`{"a": {"b": 1}}` as `[("a.b", 1)]`."""
    if not isinstance(value, dict) or not value or depth > 12:
        return [(prefix, value)] if prefix else []
    found: list[tuple[str, Any]] = []
    for key, item in value.items():
        found += leaves(item, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    return found
