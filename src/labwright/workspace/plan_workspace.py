"""The folder of one plan (text, versions, manifest, other files, digest) and the folder that contains all plans.

Not safe for two processes at once: in a project, the server is the only writer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid
from labwright.domain.ids import PLAN, new_id
from labwright.domain.plan import Plan, PlanVersion
from labwright.files import read_json, write_json, write_whole
from labwright.paths import PlanPaths
from labwright.workspace import copies
from labwright.workspace.digest import Digest, digest_of
from labwright.workspace.manifest import CHANGING, Manifest, read_manifest, write_manifest
from labwright.workspace.names import inside, safe_id

_PLAN = "plan"  # our key in the manifest; planning nodes have their own


@dataclass(frozen=True, slots=True)
class Staged:
    """A prepared change. Publishing it needs no disk space."""

    publish: Callable[[], None]


class PlanWorkspaceHandle:
    def __init__(self, folder: Path) -> None:
        self.id = folder.name
        self.paths = PlanPaths(folder)

    @classmethod
    def materialize(cls, workspace: Workspace, plan_id: str | None = None) -> PlanWorkspaceHandle:
        """Return the folder of this plan and create it if it does not exist."""
        handle = workspace.plan(plan_id or new_id(PLAN))
        handle.paths.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return handle

    def stage(self, plan: Plan, saved: PlanVersion) -> Staged:
        """Write everything that needs disk space, under names that nobody reads until `publish`.

        The caller holds `CHANGING` until then. While a plan is compiled, its text may already be the next version,
        so only a new version replaces it.
        """
        for folder in (self.paths.dir, self.paths.text.parent, self.paths.versions, self.paths.staged):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        text, manifest = self.paths.staged / self.paths.text.name, self.paths.staged / self.paths.manifest.name
        is_drafted = bool(plan.compiling_by) and self.paths.version(saved.version).exists() and self.paths.text.exists()
        self.keep_version(saved)
        write_whole(text, saved.raw_markdown.encode())
        write_manifest(manifest, {**self.manifest(), _PLAN: _plain(plan.to_dict())})

        def publish() -> None:
            """Publish the manifest last: it says that the rest is complete."""
            if not is_drafted:
                os.replace(text, self.paths.text)
            os.replace(manifest, self.paths.manifest)

        return Staged(publish)

    def keep_version(self, saved: PlanVersion) -> None:
        write_json(self.paths.version(saved.version), saved.to_dict())

    def plan(self) -> Plan | None:
        """Return the plan of the manifest, or None."""
        record = self.manifest().get(_PLAN)
        if record is None:
            return None
        try:
            plan = Plan.from_dict(record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Invalid(
                f"{self.paths.manifest} does not contain a valid plan: {error}.", hint="Fix the file by hand."
            ) from error
        if plan.id != self.id:
            raise Invalid(f"{self.paths.manifest} belongs to the plan {plan.id}.", hint="Rename the folder to that id.")
        return plan

    def versions(self, plan: Plan) -> list[PlanVersion]:
        """Return the existing versions up to the newest published one, which may come from the text alone."""
        files = (self.paths.version(number) for number in range(1, plan.version + 1))
        found = [PlanVersion.from_dict(read_json(path)) for path in files if path.exists()]
        if not found or found[-1].version != plan.version:
            found.append(self._version_from_text(plan))
        return found

    def _version_from_text(self, plan: Plan) -> PlanVersion:
        return PlanVersion(
            version=plan.version,
            title=plan.title,
            goal=plan.goal,
            raw_markdown=self.paths.text.read_bytes().decode(),
            created_at=plan.updated_at,
            created_by=plan.created_by,
        )

    def manifest(self) -> Manifest:
        return read_manifest(self.paths.manifest)

    def update_manifest(self, **parts: Any) -> None:
        """Replace these top-level keys and leave the others."""
        with CHANGING:
            write_manifest(self.paths.manifest, {**self.manifest(), **parts})

    def write(self, relative: str, content: bytes) -> None:
        """Write a file atomically: readers see the old content or the new one, also after a kill."""
        path = inside(self.paths.dir, relative)
        for folder in (path.parent, self.paths.staged):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, content, aside_in=self.paths.staged)

    def read(self, relative: str) -> bytes:
        return inside(self.paths.dir, relative).read_bytes()

    def digest(self, facts: Mapping[str, str] | None = None) -> Digest:
        return digest_of(self.paths.dir, facts)

    def keep_copy(self, digest: Digest) -> Path:
        self.paths.copies.mkdir(parents=True, exist_ok=True, mode=0o700)
        return copies.keep_copy(self.paths.dir, self.paths.copies, digest)

    def open_copy(self, value: str) -> Path:
        return copies.open_copy(self.paths.copies, value)

    def remove_copy(self, value: str) -> None:
        copies.remove_tree(self.paths.copies / value)

    def listing(self, value: str) -> Digest:
        """Return the digest of a kept copy."""
        return copies.listing(self.paths.copies, value)

    def remove(self) -> None:
        copies.remove_tree(self.paths.dir)


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Turn enumerations into strings: the safe YAML writer supports only plain types."""
    return {name: str(value) if isinstance(value, str) else value for name, value in record.items()}


class Workspace:
    """The folder that contains plans: `.labwright` for a project's server, any folder for a script."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self.plans = self.root / "plans"

    def plan(self, plan_id: str) -> PlanWorkspaceHandle:
        """Return the handle of a plan, which may not exist yet."""
        return PlanWorkspaceHandle(self.plans / safe_id(plan_id))

    def plan_ids(self) -> list[str]:
        """Return the names of the folders that have a manifest, sorted."""
        return sorted(path.parent.name for path in self.plans.glob("*/manifest.yaml"))
