"""`labwright plan "a goal"` beside `labwright plan show PLAN`: what is no command is the goal of something new."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

from labwright.domain.errors import Invalid

NEW = "new"
_OWN = ("--help",)


class GoalGroup(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--json"] and args[1:2] and args[1] in self.commands:
            args = [args[1], "--json", *args[2:]]  # it belongs to the command, wherever it stands
        if args and args[0] not in (*self.commands, *_OWN):
            self._refuse_a_slip(ctx.command_path, args[0])
            args = [NEW, *args]
        return list(super().parse_args(ctx, args))

    def _refuse_a_slip(self, path: str, first: str) -> None:
        """A single word is more likely a command that was mistyped than a goal."""
        if first.startswith("-") or not first.strip() or len(first.split()) > 1:
            return
        meant = get_close_matches(first, self.commands, n=1)
        ask = f"Did you mean: {path} {meant[0]}" if meant else "A goal is a sentence, in quotes"
        raise Invalid(f"There is no command {first!r}, and one word is no goal.", hint=f"{ask}. See: {path} --help")
