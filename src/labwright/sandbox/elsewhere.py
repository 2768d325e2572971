"""A sandbox on another machine: whether it works is seen there, by the job itself, before it starts anything."""

from __future__ import annotations

import shlex

from labwright.sandbox.fences import Fence, Limits, bubblewrap_command

NO_SANDBOX = "labwright: bubblewrap does not work on"  # and the machine's name


def only_where_it_works(command: str) -> str:
    """One line for a shell: the command where bubblewrap works, and elsewhere words instead of it."""
    tried = shlex.join(bubblewrap_command(["/bin/true"], Fence(), Limits()))
    return f'{tried} || {{ echo "{NO_SANDBOX} $(uname -n)"; exit 1; }}; {command}'
