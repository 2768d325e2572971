"""Fill in `{{variables}}`. Values are text: what looks like a variable inside of one stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from labwright.domain.errors import Invalid

_SLOT = re.compile(r"\{\{[ \t]*([a-z_][a-z0-9_]*)[ \t]*\}\}")


def variables_in(body: str) -> list[str]:
    """Each once, in order. Braces that are no variable are a mistake, not text to pass on in silence."""
    rest = _SLOT.sub("", body)
    if "{{" in rest:
        line = next(line for line in rest.splitlines() if "{{" in line)
        raise Invalid(
            f"This is no variable: {line[line.index('{{') :][:60]!r}.",
            hint="A variable is {{name}}, in small letters. Two opening braces mean nothing else in a skill.",
        )
    return list(dict.fromkeys(_SLOT.findall(body)))


def rendered(body: str, values: Mapping[str, str]) -> str:
    missing = [name for name in variables_in(body) if name not in values]
    if missing:
        raise Invalid(
            f"There is no value for {', '.join(f'{{{{{name}}}}}' for name in missing)}.",
            hint="Give it: in `variables` over HTTP, with --set NAME=VALUE on the command line.",
            field=("variables", missing[0]),
        )
    return _SLOT.sub(lambda slot: values[slot[1]], body)
