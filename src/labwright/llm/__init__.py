"""Language models behind one small interface of our own. No SDK is imported here.

Read `chat.py` first, then `models.py`, which builds the models that the settings choose.
"""

from labwright.llm.chat import (
    CallPiece,
    ChatMessage,
    ChatModel,
    ChatPiece,
    ChatRequest,
    EndPiece,
    TextPiece,
    ThinkingPiece,
    ToolCall,
    ToolSpec,
)
from labwright.llm.model import Model, ModelAnswer, Request, Tier, Usage
from labwright.llm.stand_ins import NoRule, OfflineModel, ScriptedChat, ScriptedModel

__all__ = [
    "CallPiece",
    "ChatMessage",
    "ChatModel",
    "ChatPiece",
    "ChatRequest",
    "EndPiece",
    "Model",
    "ModelAnswer",
    "NoRule",
    "OfflineModel",
    "Request",
    "ScriptedChat",
    "ScriptedModel",
    "TextPiece",
    "ThinkingPiece",
    "Tier",
    "ToolCall",
    "ToolSpec",
    "Usage",
]
