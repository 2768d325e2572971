"""Read a sweep file in YAML, and remember lines for error messages. The server checks its contents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from labwright.domain.errors import FieldPath, Invalid

_EXAMPLE = "Start with base_command: python train.py, then parameters: with lr: [0.1, 0.01] below it."
_LARGEST_BYTES = 1 << 20


class _Loader(yaml.SafeLoader):
    """Reads 1e-4 as a number, `on` and `no` as text, and nothing as a date."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*|\d[\d_]*(?=[eE]))(?:[eE][-+]?\d+)?"),
    list("-+0123456789."),
)


@dataclass(frozen=True, slots=True)
class SweepFile:
    path: Path
    content: dict[str, Any]
    lines: dict[FieldPath, int]

    def located(self, error: Invalid) -> Invalid:
        """Return the error with the line of each fault."""
        faults = "; ".join(f"line {self._line_of(field)}: {text.removesuffix('.')}" for field, text in error.faults)
        return Invalid(f"{self.path}, {faults}.", hint=error.hint)

    def _line_of(self, field: FieldPath) -> int:
        """Return the line of the field, or of the field that contains it."""
        while field and field not in self.lines:
            field = field[:-1]
        return self.lines.get(field, 1)


def read_sweep_file(path: Path) -> SweepFile:
    try:
        text = path.read_bytes()
    except OSError as error:
        hint = "Name an existing file, or see: labwright sweep --help"
        raise Invalid(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    if len(text) > _LARGEST_BYTES:
        raise Invalid(f"{path} is too large for a sweep file.", hint="The limit is 1 MB.")
    try:
        _refuse_aliases(path, text)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise Invalid(f"{path}, line 1: the file is empty.", hint=_EXAMPLE)
        reader = _NodeReader(path, loader)
        content = reader.value(node, ())
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count(b"\n") + 1
        raise Invalid(f"{path}, line {line}: {error.reason}.", hint="Save it as plain text in UTF-8.") from error
    except yaml.YAMLError as error:
        raise _unreadable(path, error) from error
    if not isinstance(content, dict):
        raise Invalid(f"{path}, line 1: the file has no fields.", hint=_EXAMPLE)
    return SweepFile(path, content, reader.lines)


def _refuse_aliases(path: Path, text: bytes) -> None:
    """Refuse aliases: they can expand to more values than fit into memory, or refer to themselves."""
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise Invalid(f"{path}, line {line}: *{event.anchor} is an alias.", hint="Write the values in full.")


def _unreadable(path: Path, error: yaml.YAMLError) -> Invalid:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    hint = "Check the indentation, and that brackets and quotes are closed."
    if "'\\t'" in problem or "\\t" in problem:
        hint = "Use spaces to indent, not tabs."
    return Invalid(f"{path}, line {mark.line + 1 if mark else 1}: {problem}.", hint=hint)


class _NodeReader:
    """Builds values from YAML nodes, and records the line of each."""

    def __init__(self, path: Path, loader: _Loader) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._path = path
        self._loader = loader

    def value(self, node: Any, place: FieldPath) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._loader.construct_object(node)

    def _mapping(self, node: Any, place: FieldPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key, str):
                raise Invalid(f"{self._path}, line {line}: a field's name must be text.", hint=_EXAMPLE)
            if key in found:
                raise Invalid(f"{self._path}, line {line}: {key} is there twice.", hint="Remove one of them.")
            self.lines[(*place, key)] = line
            found[key] = self.value(value_node, (*place, key))
        return found
