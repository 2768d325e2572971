"""What was read of a project's scripts stays known as long as no file of it changed: every verb looks at it anew.

A file counts as the same by size, times and inode. Only reading is saved in this way, never a decision: what an
approval covers is hashed from the content each time.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable

from labwright.planning.scan.facts import EntryPoint, Skipped
from labwright.planning.scan.walk import Tree

_MOST_PROJECTS = 4
_Signature = frozenset[tuple[str, int, int, int, int]]
_known: OrderedDict[str, tuple[_Signature, list[EntryPoint], list[Skipped]]] = OrderedDict()


def entry_points(tree: Tree, read: Callable[[], list[EntryPoint]]) -> list[EntryPoint]:
    """As they were read before, or by `read`, with what that leaves out among the tree's skipped."""
    now, known = _signature(tree), _known.get(tree.root)
    if known is not None and known[0] == now:
        tree.skipped += known[2]
        return known[1]
    before = len(tree.skipped)
    found = read()
    if tree.complete:
        _known[tree.root] = (now, found, tree.skipped[before:])
        _known.move_to_end(tree.root)
        while len(_known) > _MOST_PROJECTS:
            _known.popitem(last=False)
    return found


def _signature(tree: Tree) -> _Signature:
    return frozenset(_facts(tree.root, path) for path in tree.files)


def _facts(root: str, path: str) -> tuple[str, int, int, int, int]:
    try:
        about = os.stat(os.path.join(root, path))
    except OSError:  # it went away meanwhile
        return (path, 0, 0, 0, 0)
    return (path, about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
