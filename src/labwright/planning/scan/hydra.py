"""Overrides from Hydra: the configuration that @hydra.main names, its defaults list and its groups."""

from __future__ import annotations

import ast
import posixpath
from dataclasses import replace
from typing import Any

from labwright.planning.scan.annotations import fields_of, type_of
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import dotted, keyword, last_name, value_of
from labwright.planning.scan.reach import Reach
from labwright.planning.scan.walk import ProjectTree, leaves, read_yaml

_OWN = {"defaults", "hydra"}


def read_hydra(reach: Reach, tree: ProjectTree) -> tuple[list[Flag], list[str]]:
    """Return the flags, and notes about missing parts."""
    decorators = ((block, item) for block in reach.blocks for item in block.decorators if isinstance(item, ast.Call))
    for block, call in decorators:
        folder_node, name_node = keyword(call, "config_path"), keyword(call, "config_name")
        if dotted(call.func) not in ("hydra.main", "main") or not (folder_node or name_node):
            continue
        names = reach.modules.constants_of(block.module)
        folder, name = value_of(folder_node, names), value_of(name_node, names)
        name = name.removesuffix(".yaml") if isinstance(name, str) else "config"
        beside = posixpath.dirname(block.module.path)
        root = posixpath.normpath(posixpath.join(beside, folder)) if isinstance(folder, str) else beside or "."
        flags = HydraConfig(tree, root.removeprefix("./")).read(name)
        stored = _stored_flags(name, reach)
        if not flags and not stored:
            return [], [f"the configuration {root}/{name}.yaml was not found"]
        return list({flag.name: flag for flag in [*stored, *flags]}.values()), []
    return [], []


class HydraConfig:
    """A folder of configurations: files, and one level down groups of alternatives."""

    def __init__(self, tree: ProjectTree, root: str) -> None:
        self._tree = tree
        self._root = "" if root == "." else f"{root}/"
        self._files = {path for path in tree.files if path.startswith(self._root) and path.endswith((".yaml", ".yml"))}

    def read(self, name: str, package: str = "", depth: int = 0) -> list[Flag]:
        path = next((path for end in (".yaml", ".yml") if (path := f"{self._root}{name}{end}") in self._files), "")
        content = read_yaml(self._tree, path) if path and depth < 8 else None
        if not isinstance(content, dict):
            return []
        flags: list[Flag] = []
        for entry in content.get("defaults") or []:
            flags += self._default(entry, posixpath.dirname(name), package, depth)
        own = {key: value for key, value in content.items() if key not in _OWN}
        place = package + "." if package else ""
        flags += [_flag(f"{place}{key}", value, path) for key, value in leaves(own)]
        return list({flag.name: flag for flag in flags}.values())

    def _default(self, entry: Any, folder: str, package: str, depth: int) -> list[Flag]:
        """Return the flags of one line of a defaults list: `- base`, `- optimizer: adam`, `- override /db: mysql`."""
        if isinstance(entry, str):
            return [] if entry == "_self_" else self.read(posixpath.join(folder, entry), package, depth + 1)
        if not isinstance(entry, dict) or len(entry) != 1:
            return []
        key, chosen = next(iter(entry.items()))
        group = str(key).removeprefix("override ").removeprefix("optional ").strip()
        group, _, given_package = group.partition("@")
        if group.startswith(("hydra/", "/hydra/")):
            return []
        where = posixpath.join("" if group.startswith("/") else folder, group.strip("/"))
        flags = [self._group(where, chosen)]
        if isinstance(chosen, str):
            path = f"{self._root}{where}/{chosen}.yaml"
            header = (self._tree.read(path) or "")[:500] if path in self._files else ""
            inner_package = given_package or where.replace("/", ".")
            is_global = "@package _global_" in header or inner_package == "_global_"
            flags += self.read(f"{where}/{chosen}", "" if is_global else inner_package, depth + 1)
        return flags

    def _group(self, group: str, chosen: Any) -> Flag:
        start = f"{self._root}{group}/"
        names = sorted(path.removeprefix(start).rsplit(".", 1)[0] for path in self._files if path.startswith(start))
        choices = tuple(name for name in names if "/" not in name)
        return Flag(
            name=group,
            option=f"{group}=",
            set_by=SetBy.OVERRIDE,
            default=chosen if isinstance(chosen, str) else None,
            required=chosen == "???",
            choices=choices,
            help="a group of configurations",
            where=start.rstrip("/"),
        )


def _flag(name: str, value: Any, path: str) -> Flag:
    missing = value == "???"
    linked = isinstance(value, str) and "${" in value
    plain = value if isinstance(value, str | int | float | bool | list | None) else str(value)
    number = _as_number(plain)
    return Flag(
        name=name,
        option=f"{name}=",
        set_by=SetBy.OVERRIDE,
        type=type_of(number),
        default=None if missing else number,
        required=missing,
        where=path,
        note="follows another value" if linked else "",
    )


def _as_number(value: Any) -> Any:
    """Convert `1e-3`, which YAML 1.1 reads as text and OmegaConf as a number."""
    if not isinstance(value, str) or "e" not in value.lower() or not value[:1].strip("+-.").isdigit():
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _stored_flags(name: str, reach: Reach) -> list[Flag]:
    """Return the fields of the dataclass that ConfigStore registers under the configuration's name."""
    for block, call in reach.calls():
        if last_name(call.func) == "store" and value_of(keyword(call, "name")) == name:
            definition = reach.modules.find_class(block.module, dotted(keyword(call, "node")))
            if definition:
                flags = fields_of(definition[1], definition[0], reach.modules)
                return [replace(flag, option=f"{flag.name}=", set_by=SetBy.OVERRIDE) for flag in flags]
    return []


def read_overridden_yaml(reach: Reach, tree: ProjectTree) -> list[Flag]:
    """Read a YAML file that the script loads. Its keys are overrides if the script splits its arguments at `=`."""
    loaders = ("OmegaConf.load", "safe_load", "yaml.load")
    if not any(dotted(call.func).endswith(loaders) for _block, call in reach.calls()):
        return []
    paths: dict[str, None] = {}
    for node in (node for block in reach.blocks for node in block.nodes):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if text.endswith((".yaml", ".yml")):
            paths |= dict.fromkeys([path for path in tree.files if path == text or path.endswith(f"/{text}")][:1])
    flags: list[Flag] = []
    for path in paths:
        content = read_yaml(tree, path)
        if isinstance(content, dict):
            flags += [_flag(key, value, path) for key, value in leaves(content)]
    if flags and not takes_overrides(reach):
        return [replace(flag, set_by=SetBy.EDIT, option="", note="in a file that the script reads") for flag in flags]
    return flags


def takes_overrides(reach: Reach) -> bool:
    """Return whether the script reads `key=value` from its arguments."""
    calls = [call for _block, call in reach.calls()]
    if any(dotted(call.func).endswith("OmegaConf.from_cli") for call in calls):
        return True
    splits = (call for call in calls if last_name(call.func) in ("split", "partition") and call.args)
    if not any(value_of(call.args[0]) == "=" for call in splits):
        return False
    return any("sys.argv" in module.text or "from sys import argv" in module.text for module in reach.files())
