"""The project's Python modules as syntax trees: their imports, definitions and blocks of statements."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from labwright.planning.scan.literals import dotted
from labwright.planning.scan.walk import ProjectTree


@dataclass(frozen=True)
class CodeBlock:
    module: SourceModule
    body: list[ast.stmt]
    owner: Definition | None = None

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return [node for statement in [*self.decorators(), *self.body] for node in _in_order(statement)]

    @cached_property
    def _calls(self) -> list[ast.Call]:
        return [node for node in self._nodes if isinstance(node, ast.Call)]

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """Return the assigned names, each with its last value."""
        found: dict[str, ast.expr] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
                found[node.target.id] = node.value
        return found

    @cached_property
    def named(self) -> frozenset[str]:
        """Return every dotted name in the block."""
        return frozenset(dotted(node) for node in self._nodes if isinstance(node, ast.Name | ast.Attribute)) - {""}

    def walk(self) -> list[ast.AST]:
        """Return every node in source order, which `ast.walk` does not keep."""
        return self._nodes

    def calls(self) -> list[ast.Call]:
        return self._calls

    def decorators(self) -> list[ast.expr]:
        return self.owner.decorator_list if self.owner else []

    def loops(self) -> Iterator[ast.For]:
        return (node for node in self._nodes if isinstance(node, ast.For))


def _in_order(root: ast.AST) -> Iterator[ast.AST]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SOURCE_ROOTS = ("", "src/", "lib/", "python/")


@dataclass
class SourceModule:
    path: str
    tree: ast.Module
    text: str
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # local name: (module, name in it or "")

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Return top-level functions and classes, also inside `if` and `try`."""
        return {node.name: node for node in _top_level(self.tree.body) if isinstance(node, Definition)}

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Return top-level names that are assigned once."""
        found: dict[str, ast.expr] = {}
        for node in _top_level(self.tree.body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                found.setdefault(node.target.id, node.value)
        return found

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Return the code that an import runs, without the main guard."""
        return [node for node in _top_level(self.tree.body) if not isinstance(node, Definition)]

    @cached_property
    def guarded(self) -> list[ast.stmt]:
        """Return the code that runs only if the module is the script."""
        return [inner for node in self.tree.body if is_main_guard(node) for inner in node.body]

    def at(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}"


def is_main_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if is_main_guard(node):
            continue
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _top_level(node.body)
            yield from _top_level(getattr(node, "orelse", []))
            for handler in getattr(node, "handlers", []):
                yield from _top_level(handler.body)
        else:
            yield node


class Modules:
    """The project's Python files by path. Each is parsed on demand, since parsing takes half a millisecond."""

    def __init__(self, tree: ProjectTree) -> None:
        self._tree = tree
        self._texts: dict[str, str | None] = {}
        self._parsed: dict[str, SourceModule | None] = {}
        self.paths = [path for path in tree.files if path.endswith(".py")]
        self._known = set(self.paths)
        self._blocks: dict[tuple[int, bool], CodeBlock] = {}
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._constants: dict[str, dict[str, ast.expr]] = {}

    def text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._tree.read(path)
        return self._texts[path]

    def get(self, path: str) -> SourceModule | None:
        if path not in self._parsed:
            self._parsed[path] = self._parse(path)
        return self._parsed[path]

    def _parse(self, path: str) -> SourceModule | None:
        text = self.text(path)
        if text is None:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in the project's strings
                tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            self._tree.skip(path, _why_unparsed(text, error))
            return None
        except (RecursionError, MemoryError):
            self._tree.skip(path, "nested too deeply to parse")
            return None
        module = SourceModule(path, tree, text)
        module.imports = dict(_imports(tree, path))
        return module

    def resolve(self, importer: str, dotted: str) -> str | None:
        """Return the file behind `import a.b`, relative to the script or the source roots."""
        key = (importer.rpartition("/")[0], dotted)
        if key not in self._resolved:
            self._resolved[key] = self._search(importer, dotted.replace(".", "/")) if dotted else None
        found = self._resolved[key]
        return found if found != importer else None

    def _search(self, importer: str, relative: str) -> str | None:
        beside = importer.rpartition("/")[0]
        places = [f"{beside}/" if beside else "", *_SOURCE_ROOTS]
        parent = beside
        while parent:
            parent = parent.rpartition("/")[0]
            places.append(f"{parent}/" if parent else "")
        for place in places:
            for name in (f"{place}{relative}.py", f"{place}{relative}/__init__.py"):
                if name in self._known:
                    return name
        return None

    def find(self, module: SourceModule, name: str, depth: int = 0) -> tuple[SourceModule, Definition] | None:
        """Return the function or class behind a name, following imports and re-exports."""
        head, _, rest = name.partition(".")
        if not rest and head in module.definitions:
            return module, module.definitions[head]
        if head not in module.imports or depth > 5:
            return None
        source, original = module.imports[head]
        wanted = ".".join(part for part in (original, rest) if part)
        return self._find_in(module, source, wanted, depth)

    def _find_in(
        self, module: SourceModule, source: str, wanted: str, depth: int
    ) -> tuple[SourceModule, Definition] | None:
        parts = [part for part in wanted.split(".") if part]
        for cut in range(len(parts), -1, -1):
            path = self.resolve(module.path, ".".join([source, *parts[:cut]]).strip("."))
            other = self.get(path) if path else None
            if other and parts[cut:]:
                return self.find(other, ".".join(parts[cut:]), depth + 1)
        return None

    def imported(self, module: SourceModule) -> Iterator[SourceModule]:
        """Yield the project's modules that this one imports."""
        for source, name in set(module.imports.values()):
            for imported in (f"{source}.{name}".strip(".") if name else source, source):
                path = self.resolve(module.path, imported)
                other = self.get(path) if path else None
                if other:
                    yield other
                    break

    def block(
        self, module: SourceModule, definition: Definition | None = None, *, is_script: bool = False
    ) -> CodeBlock:
        """Return a definition's body, or the top level; with `is_script` including the main guard."""
        key = (id(definition or module), is_script)
        if key not in self._blocks:
            top = [*module.statements, *(module.guarded if is_script else [])]
            self._blocks[key] = CodeBlock(module, definition.body if definition else top, definition)
        return self._blocks[key]

    def constants_of(self, module: SourceModule) -> dict[str, ast.expr]:
        """Return constants by their name in this module, including imported ones."""
        if module.path not in self._constants:
            self._constants[module.path] = self._read_constants(module)
        return self._constants[module.path]

    def _read_constants(self, module: SourceModule) -> dict[str, ast.expr]:
        found = dict(module.constants)
        for local, (source, name) in module.imports.items():
            path = self.resolve(module.path, source) if name else None
            other = self.get(path) if path else None
            if other and name in other.constants:
                found.setdefault(local, other.constants[name])
        return found


def _why_unparsed(text: str, error: SyntaxError | ValueError) -> str:
    if isinstance(error, SyntaxError) and "print" in str(error.msg):
        return f"Python 2, line {error.lineno}"
    if isinstance(error, SyntaxError) and text.count("\nexcept ") and "except" in str(error.msg):
        return f"Python 2, line {error.lineno}"
    line = getattr(error, "lineno", None)
    return f"syntax error in line {line}" if line else f"cannot be parsed: {error}"


def _all_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements at any depth. Expressions are skipped: they hold none and are most of a tree."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting.extend(getattr(node, name, ()))


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    package = path.split("/")[:-1]
    for node in _all_statements(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or whole, (whole, "")
                if not alias.asname and "." in alias.name:
                    yield alias.name, (alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            base = package[: max(0, len(package) - node.level + 1)] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((alias.asname or alias.name, (source, alias.name)) for alias in node.names)
