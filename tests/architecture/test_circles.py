"""No module imports itself through others; that no folder does is a contract in pyproject.toml."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

FACADE = "gpuexplore"  # loads public names when they are asked for; what imports it wants its version
ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"import_module\(\s*f?\"(gpuexplore[\w.]*)\"\s*\)")


def modules_loaded_by(module):
    """Return the modules that `module` names in calls of `import_module`, which no import statement tells."""
    path = ROOT / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return set(LOADED.findall(path.read_text(encoding="utf-8")))


def circle_in(imports):
    """Return the modules of one circle, the first again at the end; none where there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_through_others():
    """Imports inside functions count, and modules loaded by name; those for type checkers alone do not."""
    graph = grimp.build_graph("gpuexplore", exclude_type_checking_imports=True, cache_dir=None)
    rooms = graph.modules - {FACADE}
    by_name = {module: modules_loaded_by(module) for module in rooms}
    imports = {module: graph.find_modules_directly_imported_by(module) | by_name[module] for module in rooms}

    assert sum(map(len, imports.values())) > 1000
    assert sum(map(len, by_name.values())) >= 3
    assert circle_in(imports) == []


@pytest.mark.parametrize(
    ("imports", "length"),
    [({"a": {"b"}, "b": {"c"}}, 0), ({"a": {"b"}, "b": {"a"}}, 3), ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, 4)],
)
def test_a_circle_would_be_seen(imports, length):
    assert len(circle_in(imports)) == length
