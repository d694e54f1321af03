"""The code of one implementation in a file of several: its function or kernel, and what that uses of the file."""

import ast
from functools import cache


@cache
def code_of(text: str, names: frozenset[str]) -> str:
    """Return the text of a module without the definitions and imports that none of `names` uses."""
    tree = ast.parse(text)
    lines: list[str | None] = list(text.splitlines())
    used = _used(tree, names)
    for node in tree.body:
        kept = [name for name in _names_of(node) if name in used]
        if kept == _names_of(node):
            continue
        first, last = _lines_of(node, text.splitlines())
        lines[first:last] = [None] * (last - first)
        if kept and isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [each for each in node.names if (each.asname or each.name) in kept]
            lines[first] = ast.unparse(node)
    shorter: list[str] = []
    for line in lines:
        if line or (line is not None and shorter[-2:] != ["", ""]):
            shorter.append(line)
    return "\n".join(shorter).strip("\n") + "\n"


@cache
def imports(text: str) -> list[tuple[str, str, str | None]]:
    """Return module, name and alias of each import of a script; the name is empty where a whole module is imported."""
    rows: list[tuple[str, str, str | None]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            rows += [(node.module, each.name, each.asname) for each in node.names]
        elif isinstance(node, ast.Import):
            rows += [(each.name, "", each.asname) for each in node.names]
    return rows


def _used(tree: ast.Module, names: frozenset[str]) -> set[str]:
    """Return `names`, and the names of the module that their definitions use, at any distance."""
    defined = {name: node for node in tree.body for name in _names_of(node)}
    used: set[str] = set()
    ahead = [name for name in names if name in defined]
    while ahead:
        name = ahead.pop()
        if name not in used:
            used.add(name)
            inside = {each.id for each in ast.walk(defined[name]) if isinstance(each, ast.Name)}
            ahead += [other for other in inside if other in defined]
            ahead += [other for other, node in defined.items() if name in _decorated_with(node)]
    return used


def _names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [each.asname or each.name for each in node.names]
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def _decorated_with(node: ast.stmt) -> set[str]:
    """Return the names among the arguments of decorators, as in `@overload(exponential)`."""
    calls = [each for each in getattr(node, "decorator_list", ()) if isinstance(each, ast.Call)]
    return {each.id for call in calls for each in call.args if isinstance(each, ast.Name)}


def _lines_of(node: ast.stmt, lines: list[str]) -> tuple[int, int]:
    """Return the first line of a statement, with its decorators and the comments above it, and the one behind it."""
    first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ()))) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return first, node.end_lineno or first + 1
