"""Counts what the house consists of: lines, files, circles, names. Works on any checkout.

python scripts/count_house.py [FOLDER]
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

PARAGRAPH: Final = 100
"""Lines below which a file with one importer is a paragraph of that one."""

LONG: Final = 500
"""Lines from which a file says in its head why it is not two."""


def main(arguments: Sequence[str]) -> int:
    """Print the counts of a checkout, by default this one."""
    root = Path(arguments[0]) if arguments else Path(__file__).parents[1]
    sources = {module(root / "src", path): path for path in (root / "src").rglob("*.py")}
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in sources.items()}
    lines = {name: path.read_text("utf-8").splitlines() for name, path in sources.items()}
    imports = {name: set(imported(name, tree, trees)) for name, tree in trees.items()}
    importers = Counter(other for others in imports.values() for other in others)
    own = [name for name in trees if name.split(".")[0] == "eddyline"]
    figures = {
        "files of src/eddyline": len(own),
        "lines": sum(len(lines[name]) for name in own),
        "lines that are not empty": sum(bool(line.strip()) for name in own for line in lines[name]),
        f"files below {PARAGRAPH} lines": sum(len(lines[name]) < PARAGRAPH for name in own),
        "of these with one importer": sum(
            len(lines[name]) < PARAGRAPH and importers[name] == 1 for name in own
        ),
        f"files of {LONG} lines and more": sum(len(lines[name]) >= LONG for name in own),
        "circles of packages": len(circles(package_imports(imports))),
        "circles of files": len(circles(imports)),
        "class names with several meanings": len(repeated(trees)),
        "file names with several meanings": len(
            repeated_files([name for name in own if sources[name].name != "__init__.py"])
        ),
    }
    width = max(map(len, figures))
    for what, figure in figures.items():
        print(f"{what:{width}}  {figure:>7,}")
    return 0


def module(folder: Path, path: Path) -> str:
    """Return the dotted name of a file."""
    return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


def imported(name: str, tree: ast.Module, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules of the house that a file imports when it is itself imported."""
    for node in runs_at_import(tree.body):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [target if target in known else node.module for target in inside]
        else:
            continue
        yield from (target for target in targets if target in known and target != name)


def runs_at_import(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module that run when it is imported, but for type checking."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from runs_at_import(node.body)


def package_imports(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return which rooms of ``eddyline`` import which."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for name, others in imports.items():
        here = room(name)
        rooms[here] |= {room(other) for other in others} - {here}
    return dict(rooms)


def room(name: str) -> str:
    """Return the room that a module is in: its first two names."""
    return ".".join(name.split(".")[:2])


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups that import each other in a circle (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in imports.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = []
            while not group or group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(group)

    sys.setrecursionlimit(10_000)
    for name in imports:
        if name not in index:
            visit(name)
    return found


def repeated(trees: Mapping[str, ast.Module]) -> list[str]:
    """Return the names that several public classes have."""
    names = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return [name for name, times in names.items() if times > 1]


def repeated_files(modules: Sequence[str]) -> list[str]:
    """Return the names that several files have."""
    names = Counter(name.rpartition(".")[2] for name in modules)
    return [name for name, times in names.items() if times > 1]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
