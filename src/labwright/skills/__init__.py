"""Skills: instructions for a model as SKILL.md files with `{{variables}}`; built in, and the project's own."""

from labwright.skills.registry import SkillRegistry
from labwright.skills.render import rendered
from labwright.skills.skill import Skill, SkillSource

__all__ = ["Skill", "SkillRegistry", "SkillSource", "rendered"]
