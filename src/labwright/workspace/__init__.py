"""Plans as folders: files, manifest, versions and digests. Needs no database and no server."""

from labwright.workspace.digest import Digest, digest_of, what_changed
from labwright.workspace.plan_workspace import PlanWorkspaceHandle, Workspace

__all__ = ["Digest", "PlanWorkspaceHandle", "Workspace", "digest_of", "what_changed"]
