"""What a loop runs: one script of the project, its flags, and the command for a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.metrics.direction import words_of
from labwright.domain.search.configurations import config_hash
from labwright.domain.wild import Wild
from labwright.planning.ir.compile import fits
from labwright.planning.scan import EntryPoint, Environment, Flag, ProjectScan, Role, run_command, scan_project

_LENGTHS = (Role.STEPS, Role.EPOCHS)
_NOT_TO_CHANGE = (Role.SEED, Role.OUTPUT, Role.DEVICE, Role.QUICK, *_LENGTHS)
_OF_EVALUATION = {
    "eval",
    "evaluation",
    "val",
    "valid",
    "validation",
    "test",
    "dev",
    "split",
    "metric",
    "metrics",
    "labels",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    entry: EntryPoint
    environment: Environment
    fixed: Mapping[str, Any]
    named: frozenset[str] = frozenset()  # what a person wants searched, whatever it is

    @classmethod
    def of(cls, lab: Lab, wild: Wild) -> Experiment:
        """As the project is now, with the lengths that a person spoke of since."""
        found = cls.in_scan(scan_project(lab.paths.project), wild.script, wild.fixed, frozenset(wild.parameters))
        said = {_one(word) for words in wild.steering for word in words_of(words["text"])}
        lengths = (flag.name for role in _LENGTHS for flag in found.entry.flags_for(role))
        return replace(found, named=found.named.union(name for name in lengths if _one(words_of(name)[-1]) in said))

    @classmethod
    def in_scan(
        cls, scan: ProjectScan, script: str, fixed: Mapping[str, Any], named: frozenset[str] = frozenset()
    ) -> Experiment:
        entry = scan.entry_point(script)
        if entry is None:
            raise Invalid(f"{script} cannot be started any more.", hint="Put it back, or start another loop.")
        if scan.environment.chosen is None and scan.environment.create:
            raise Conflict(
                "The environment that its runs activate is not made yet.",
                hint=f"Make it: {scan.environment.create}",
            )
        return cls(entry=entry, environment=scan.environment, fixed=fixed, named=named)

    @property
    def seed_flag(self) -> Flag | None:
        return next(iter(self.entry.flags_for(Role.SEED)), None)

    def command(self, params: Mapping[str, Any], seed: int) -> str:
        """The seed only where the script takes one: without it a repetition shows what noise there is."""
        values = {**self.fixed, **self.differences(params)}
        if self.seed_flag is not None:
            values[self.seed_flag.name] = seed
        return run_command(self.entry, self.environment, values)

    def defaults(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Of those flags that have one."""
        found = {name: flag.default for name in names if (flag := self.entry.flag(name)) is not None}
        return {name: value for name, value in found.items() if value is not None}

    def differences(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Without what the script does anyway."""
        usual = self.defaults(params)
        return {name: value for name, value in params.items() if name not in usual or usual[name] != value}

    def label(self, params: Mapping[str, Any]) -> str:
        """The same for configurations that are the same to the script."""
        return config_hash(self.differences(params))

    def fault_in(self, change: Mapping[str, Any]) -> str:
        """Why these values cannot be set; empty where they can."""
        for name, value in change.items():
            flag = self.entry.flag(name)
            if flag is None or not flag.is_settable:
                return f"{self.entry.path} has no flag {name} that can be set. It has: {', '.join(self.changeable)}."
            if flag.name != name:
                return f"Call it {flag.name}, not {name}."
            if not self._may_change(flag):
                return f"{name} is not for a proposal to change."
            if not fits(value, flag):
                takes = ", ".join(map(str, flag.choices)) if flag.choices else flag.type
                return f"{name} cannot be {value!r}; it takes {takes}."
        return ""

    @property
    def changeable(self) -> list[str]:
        return [flag.name for flag in self.entry.flags if flag.is_settable and self._may_change(flag)]

    def _may_change(self, flag: Flag) -> bool:
        """What a person named, and numbers, switches and choices that say neither how long nor what is evaluated."""
        if flag.name in self.named:
            return True
        return flag.name not in self.fixed and flag.role not in _NOT_TO_CHANGE and is_about_learning(flag)


def _one(word: str) -> str:
    """Epochs and an epoch are the same to whoever speaks of `num_train_epochs`."""
    return word.removesuffix("s")


def is_about_learning(flag: Flag) -> bool:
    """Free text and paths may lead to other data; a flag by such a name may choose what is measured."""
    plain = flag.type in ("int", "float", "bool") or bool(flag.choices)
    return plain and not set(words_of(flag.name)) & _OF_EVALUATION
