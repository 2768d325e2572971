"""Plans as folders: their files, manifest, versions and digests. Knows no database and no server."""

from labwright.workspace.digest import Digest, digest_of, what_changed
from labwright.workspace.plan_workspace import PlanWorkspaceHandle
from labwright.workspace.root import Workspace

__all__ = ["Digest", "PlanWorkspaceHandle", "Workspace", "digest_of", "what_changed"]
