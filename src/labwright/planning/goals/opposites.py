"""`with and without bias` for a script that has `--no-bias`: read as if it had `--bias`, and then turned round."""

from __future__ import annotations

from dataclasses import replace

from labwright.planning.goals.varied import Varied, keep
from labwright.planning.scan import EntryPoint, Flag
from labwright.planning.scan.facts import plain_name

_OFF = ("no_", "disable_", "without_")


def opposites_of(entry: EntryPoint) -> dict[str, Flag]:
    """Each switch that turns something off, by the name of what it turns off; not where that is a flag itself."""
    own = {plain_name(flag.name) for flag in entry.flags}
    found = {}
    for flag in entry.flags:
        prefix = next((prefix for prefix in _OFF if plain_name(flag.name).startswith(prefix)), "")
        name = plain_name(flag.name).removeprefix(prefix)
        if flag.type == "bool" and prefix and name not in own:
            found[name] = flag
    return found


def off_options(flag: Flag) -> set[str]:
    """How a switch is typed to turn it off: `--no-amp` of a flag that the program knows as `amp`."""
    named_off = plain_name(flag.name).startswith(_OFF)
    typed = {flag.negative, flag.option} if flag.type == "bool" and not named_off else set()
    return {option.lower() for option in typed if plain_name(option).startswith(_OFF)}


def as_opposite(name: str, flag: Flag) -> Flag:
    return replace(flag, name=name, option=name, aliases=(), default=not flag.default)


def turn_round(found: Varied, opposites: dict[str, Flag]) -> None:
    """What was read of the opposite becomes the script's own flag, with the other value."""

    def real(flag: Flag) -> Flag:
        return opposites.get(flag.name, flag)

    read, found.variations = found.variations, []
    for variation in sorted(read, key=lambda variation: variation.flag in opposites):
        flag = opposites.get(variation.flag)
        if flag is None:
            found.variations.append(variation)
        elif flag.name not in {known.flag for known in found.variations}:
            found.fixed.pop(flag.name, None)
            found.variations.append(replace(variation, flag=flag.name, values=tuple(not v for v in variation.values)))
    for name in [name for name in found.fixed if name in opposites]:
        keep(opposites[name], (not found.fixed.pop(name),), "switch", "", found, beside=True)
    found.open = [(real(flag), count) for flag, count in found.open]
    found.unclear = [(real(flag), text) for flag, text in found.unclear]
    found.unsettable = [real(flag) for flag in found.unsettable]
    found.named_only = [real(flag) for flag in found.named_only]
