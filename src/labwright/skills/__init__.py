"""Skills: instructions for a model as SKILL.md files with `{{variables}}`, built in or in the project."""

from labwright.skills.registry import SkillRegistry
from labwright.skills.skill import Skill, SkillSource, rendered

__all__ = ["Skill", "SkillRegistry", "SkillSource", "rendered"]
