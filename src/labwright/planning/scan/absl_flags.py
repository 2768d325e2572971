"""Flags from absl: `flags.DEFINE_float("lr", 0.1, "help")`."""

from __future__ import annotations

from labwright.planning.scan.facts import Flag
from labwright.planning.scan.literals import UNKNOWN, known, last_name, value_of
from labwright.planning.scan.reach import Reach

_TYPES = {
    "integer": "int",
    "float": "float",
    "string": "str",
    "boolean": "bool",
    "bool": "bool",
    "enum": "str",
    "list": "list[str]",
}


def read_absl(reach: Reach) -> list[Flag]:
    found = []
    for block, call in reach.calls():
        kind = _TYPES.get(last_name(call.func).removeprefix("DEFINE_")) if "DEFINE_" in last_name(call.func) else None
        if kind is None:
            continue
        values = [value_of(item, reach.modules.constants_of(block.module)) for item in call.args]
        if len(values) < 2 or not isinstance(values[0], str):
            continue
        choices = values[2] if last_name(call.func) == "DEFINE_enum" and len(values) > 2 else None
        found.append(
            Flag(
                name=values[0],
                option=f"--{values[0]}",
                type=kind,
                default=known(values[1]),
                required=values[1] is UNKNOWN,
                choices=tuple(choices) if isinstance(choices, list) else (),
                help=values[-1] if isinstance(values[-1], str) and len(values) > 2 else "",
                takes_value=kind != "bool",
                negative=f"--no{values[0]}" if kind == "bool" else "",
                where=block.module.at(call),
            )
        )
    return found
