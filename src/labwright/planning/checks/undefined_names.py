"""Every name that is used is defined somewhere."""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Module, Subject

_NAMES_THAT_ARE = {*dir(builtins), "__file__", "__name__", "__doc__", "__package__"}


def check_undefined_names(subject: Subject) -> Iterator[Found]:
    for module in subject.modules.values():
        yield from _undefined(module)


def _undefined(module: Module) -> Iterator[Found]:
    top = symtable.symtable(module.text, module.path, "exec")
    known = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    known |= {symbol.get_name() for symbol in top.get_symbols() if symbol.is_namespace()} | _NAMES_THAT_ARE
    for name in sorted({name for table in _tables(top) for name in _globals_used(table)} - known):
        words = f"{name} is used in {module.path} and nowhere defined."
        yield Found(code="undefined_name", place=module.path, message=words, hint="Define or import it.")


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _globals_used(table: symtable.SymbolTable) -> Iterator[str]:
    module = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (module or symbol.is_global()):
            yield symbol.get_name()
