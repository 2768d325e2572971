"""The registry of tools: what conversations and other assistants can do. There is one implementation of each.

No tool approves, changes settings or reads another conversation. Most have the name of the HTTP operation that does the
same. Files, the shell and questions are for conversations only: other assistants have their own.
"""

from labwright.agent.tools import files, plans, project, results, runs, sweeps, waits, wild
from labwright.agent.tools.plans import ASK_USER
from labwright.agent.tools.shell import shell_tool
from labwright.agent.tools.tool import Tool
from labwright.domain.session import Mode

_FAMILIES = (project, runs, results, sweeps, wild, plans, waits, files)
TOOLS: dict[str, Tool] = {tool.name: tool for family in _FAMILIES for tool in family.TOOLS}
OUTSIDE_TOOLS = {name: tool for name, tool in TOOLS.items() if not tool.chat_only}
_PLANNING = [tool for tool in TOOLS.values() if tool.plans or not tool.writes]
# By mode. A turn keeps the mode it started in, even if the session's mode changes meanwhile.
CHAT_TOOLS: dict[Mode, dict[str, Tool]] = {
    Mode.AGENT: {tool.name: tool for tool in (*TOOLS.values(), shell_tool(Mode.AGENT))},
    Mode.PLAN: {tool.name: tool for tool in (*_PLANNING, ASK_USER, shell_tool(Mode.PLAN))},
}
