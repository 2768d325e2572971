"""Print the tools for other assistants as `mcp/tools.json` contains them."""

import json

from labwright.agent.tools.outside import described
from labwright.domain.actor import Scope

tools = (json.dumps(tool, ensure_ascii=False) for tool in described(Scope.AGENT))
print("[\n" + ",\n".join(tools) + "\n]")
