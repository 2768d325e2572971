"""Models behind one small interface of our own. `offline.py` needs no key and no network; no SDK is imported here."""

from labwright.llm.model import Answer, Model, Request, Tier, Usage
from labwright.llm.offline import NoRule, OfflineModel
from labwright.llm.scripted import ScriptedModel

__all__ = ["Answer", "Model", "NoRule", "OfflineModel", "Request", "ScriptedModel", "Tier", "Usage"]
