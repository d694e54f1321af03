"""No module imports itself through others; that no folder does is a contract in pyproject.toml."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def circle_in(imports):
    """Return the modules of one circle, the first again at the end; none where there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_through_others():
    """Imports inside functions count; those for type checkers alone do not."""
    graph = grimp.build_graph("gpuexplore", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    assert sum(map(len, imports.values())) > 1000
    assert circle_in(imports) == []


@pytest.mark.parametrize(
    ("imports", "length"),
    [({"a": {"b"}, "b": {"c"}}, 0), ({"a": {"b"}, "b": {"a"}}, 3), ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, 4)],
)
def test_a_circle_would_be_seen(imports, length):
    assert len(circle_in(imports)) == length
