"""What a conversation may do in each mode. The mode holds for every turn anew, also when it is switched."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.agent.tools import TOOLS
from labwright.agent.tools.shell import shell_tool
from labwright.agent.tools.tool import Tool
from labwright.domain.session import Mode

_KEEPS_A_PLAN = "save_plan"


@dataclass(frozen=True, slots=True)
class ChatMode:
    tools: dict[str, Tool]


def _with_shell(mode: Mode, tools: dict[str, Tool]) -> ChatMode:
    shell = shell_tool(mode)
    return ChatMode({**tools, shell.name: shell})


CHAT_MODES = {
    Mode.AGENT: _with_shell(Mode.AGENT, TOOLS),
    Mode.PLAN: _with_shell(
        Mode.PLAN, {name: tool for name, tool in TOOLS.items() if not tool.writes or name == _KEEPS_A_PLAN}
    ),
}
