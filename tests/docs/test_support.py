"""docs/support.md is what its generator writes, names every operation, and says what the support matrix says."""

import pytest

from gpuexplore.measure.candidates.candidate import support_matrix
from gpuexplore.operations import OPERATIONS
from scripts.support_matrix import FILE, devices, page, section
from tests.docs.markdown import words_in_code


def test_page_of_support_is_up_to_date():
    assert FILE.read_text(encoding="utf-8") == page(), "docs/support.md is not up to date: run make docs"


def test_page_of_support_names_every_operation_and_every_implementation():
    names = {row.name for operation in OPERATIONS.values() for row in operation.implementations}
    assert set(OPERATIONS) | names <= words_in_code(page())


def cells(row):
    return [cell.strip().split(", ") for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("device", devices().values(), ids=lambda device: device.kind)
def test_rows_of_a_device_allow_what_the_support_matrix_allows_and_nothing_else(device):
    rows = [cells(line) for line in section(device) if line.startswith("| ")][2:]
    written = {
        (operation, implementation, dtype)
        for operations, implementations, dtypes, _ in rows
        for operation in operations
        for implementation in implementations
        for dtype in dtypes
    }
    optional = {(name, i.name) for name, op in OPERATIONS.items() for i in op.implementations if i.optional}
    allowed = {
        (name, cell["implementation"], cell["dtype"])
        for name, operation in OPERATIONS.items()
        for cell in support_matrix(operation, device)
        if cell["reason"] is None and (name, cell["implementation"]) not in optional
    }

    assert written == allowed
