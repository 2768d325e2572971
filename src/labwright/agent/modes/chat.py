"""What a conversation may do in each mode. The mode holds for every turn anew, also when it is switched."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.agent.tools import TOOLS
from labwright.agent.tools.tool import Tool
from labwright.domain.session import Mode

_KEEPS_A_PLAN = "save_plan"


@dataclass(frozen=True, slots=True)
class ChatMode:
    tools: dict[str, Tool]


CHAT_MODES = {
    Mode.AGENT: ChatMode(TOOLS),
    Mode.PLAN: ChatMode({name: tool for name, tool in TOOLS.items() if not tool.writes or name == _KEEPS_A_PLAN}),
}
