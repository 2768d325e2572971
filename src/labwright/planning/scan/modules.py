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
    def nodes(self) -> list[ast.AST]:
        """All nodes in source order, which `ast.walk` does not keep."""
        found: list[ast.AST] = []
        waiting: list[ast.AST] = [*reversed(self.body), *reversed(self.decorators)]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))
        return found

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """The assigned names, each with its last value."""
        found: dict[str, ast.expr] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
                found[node.target.id] = node.value
        return found

    @cached_property
    def named(self) -> frozenset[str]:
        """Every dotted name in the block."""
        return frozenset(dotted(node) for node in self.nodes if isinstance(node, ast.Name | ast.Attribute)) - {""}

    @property
    def decorators(self) -> list[ast.expr]:
        return self.owner.decorator_list if self.owner else []

    def loops(self) -> Iterator[ast.For]:
        return (node for node in self.nodes if isinstance(node, ast.For))


Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
_SOURCE_ROOTS = ("", "src/", "lib/", "python/")


@dataclass
class SourceModule:
    path: str
    tree: ast.Module
    text: str
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # local name: (module, name in it or "")

    @cached_property
    def top_imports(self) -> list[tuple[str, str]]:
        """The imports that starting the script always runs, as module and name: none inside `if`, `try`, functions."""
        always = ast.Module([*_unconditional(self.tree.body), *_unconditional(self.guarded)], [])
        return [imported for _local, imported in _imports(always, self.path)]

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Top-level functions and classes, also inside `if` and `try`."""
        return {node.name: node for node in _top_level(self.tree.body) if isinstance(node, Definition)}

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Top-level names, each with its first value."""
        found: dict[str, ast.expr] = {}
        for node in _top_level(self.tree.body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                found.setdefault(node.target.id, node.value)
        return found

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The code that an import runs, without the main guard."""
        return [node for node in _top_level(self.tree.body) if not isinstance(node, Definition)]

    @cached_property
    def guarded(self) -> list[ast.stmt]:
        """The code that runs only if the module is the script."""
        return [inner for node in self.tree.body if is_main_guard(node) for inner in node.body]

    def at(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}"


def is_main_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def _unconditional(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the imports among statements, also those inside `with`."""
    inner = [found for node in body if isinstance(node, ast.With) for found in _unconditional(node.body)]
    return [*(node for node in body if isinstance(node, ast.Import | ast.ImportFrom)), *inner]


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
        self.folders = {name for path in self.paths for name in path.split("/")[:-1]}
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
        except SyntaxError as error:
            message = str(error.msg)
            is_python_2 = "print" in message or ("except" in message and "\nexcept " in text)
            if error.lineno:
                reason = f"Python 2, line {error.lineno}" if is_python_2 else f"syntax error in line {error.lineno}"
            else:
                reason = f"cannot be parsed: {error}"
            self._tree.skip(path, reason)
            return None
        except ValueError as error:
            self._tree.skip(path, f"cannot be parsed: {error}")
            return None
        except (RecursionError, MemoryError):
            self._tree.skip(path, "nested too deeply to parse")
            return None
        return SourceModule(path, tree, text, dict(_imports(tree, path)))

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
        parts = [part for part in (original, *rest.split(".")) if part]
        for cut in range(len(parts), -1, -1):  # the leading parts may be modules, the others are names in them
            path = self.resolve(module.path, ".".join([source, *parts[:cut]]).strip("."))
            other = self.get(path) if path else None
            if other and parts[cut:]:
                return self.find(other, ".".join(parts[cut:]), depth + 1)
        return None

    def find_class(self, module: SourceModule, name: str) -> tuple[SourceModule, ast.ClassDef] | None:
        match self.find(module, name):
            case source, ast.ClassDef() as definition:
                return source, definition
        return None

    def find_function(self, module: SourceModule, name: str) -> tuple[SourceModule, Function] | None:
        match self.find(module, name):
            case source, (ast.FunctionDef() | ast.AsyncFunctionDef()) as definition:
                return source, definition
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
            constants = dict(module.constants)
            for local, (source, name) in module.imports.items():
                path = self.resolve(module.path, source) if name else None
                other = self.get(path) if path else None
                if other and name in other.constants:
                    constants.setdefault(local, other.constants[name])
            self._constants[module.path] = constants
        return self._constants[module.path]


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each imported local name with its module and its name there. Imports inside functions count too."""
    package = path.split("/")[:-1]
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):  # expressions hold no statements
            waiting.extend(getattr(node, block, ()))
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
