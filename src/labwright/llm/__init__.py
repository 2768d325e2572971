"""Models behind one small interface of our own. `offline.py` needs no key and no network; no SDK is imported here.

Read `chat.py` first, then `models.py`, which puts together what the settings choose.
"""

from labwright.llm.chat import (
    CallPiece,
    ChatModel,
    ChatPiece,
    ChatRequest,
    EndPiece,
    Message,
    TextPiece,
    ThinkingPiece,
    ToolCall,
    ToolSpec,
)
from labwright.llm.model import Answer, Model, Request, Tier, Usage
from labwright.llm.offline import NoRule, OfflineModel
from labwright.llm.scripted import ScriptedChat, ScriptedModel

__all__ = [
    "Answer",
    "CallPiece",
    "ChatModel",
    "ChatPiece",
    "ChatRequest",
    "EndPiece",
    "Message",
    "Model",
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
