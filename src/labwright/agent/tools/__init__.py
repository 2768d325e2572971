"""What an agent can do: the verbs that everybody uses, acting as an agent, with bounded answers.

There is no tool that approves, changes settings or reads another conversation. The shell is made for each mode.
"""

from labwright.agent.tools import alerts, files, machine, memory, metrics, output, plans, runs, sweeps, wait
from labwright.agent.tools.tool import Tool

_FAMILIES = (machine, runs, sweeps, output, metrics, alerts, plans, memory, files, wait)
TOOLS: dict[str, Tool] = {tool.name: tool for family in _FAMILIES for tool in family.TOOLS}
