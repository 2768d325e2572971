"""A tool that refuses what it does not know: left out in silence, a run would go without its limit or its cards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp_types import ToolAnnotations
from pydantic import ConfigDict, ValidationError, create_model

from labwright.domain.errors import describe_validation_error


class _NothingElse(ArgModelBase):
    model_config = ConfigDict(extra="forbid")


class StrictTool(Tool):
    @classmethod
    def of(cls, verb: Callable[..., Any], name: str, kind: ToolAnnotations) -> StrictTool:
        tool = cls.from_function(verb, name=name, annotations=kind, structured_output=False)
        assert isinstance(tool, cls)
        known = tool.fn_metadata.arg_model
        strict = create_model(known.__name__, __base__=(_NothingElse, known))
        tool.fn_metadata.arg_model = strict
        tool.parameters = strict.model_json_schema(by_alias=True)
        return tool

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            raise ToolError(" ".join(_said(error, list(self.parameters["properties"])))) from error
        return await super().run(arguments, context, convert_result)


def _said(error: ValidationError, known: list[str]) -> Iterator[str]:
    """What is wrong, in words that let a model mend it."""
    unknown = False
    for fault in error.errors(include_url=False):
        name = ".".join(map(str, fault["loc"]))
        if fault["type"] == "extra_forbidden":
            unknown = True
            yield f"There is no argument {name}{_meant(name, known)}."
        elif fault["type"] == "missing":
            yield f"The argument {name} is missing."
        else:
            yield f"{name} {describe_validation_error(fault)}."
    if unknown:
        yield f"Hint: It takes {', '.join(known) or 'none'}."


def _meant(name: str, known: Iterable[str]) -> str:
    inside = [one for one in known if name in one.split("_")]
    found = get_close_matches(name, known, 1) or inside
    return f"; perhaps {found[0]}" if found else ""
