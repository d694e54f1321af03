"""PTX made to take long or much: it is refused, or read in time."""

from time import thread_time

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.kernels.ptx import parse

KERNEL = ".version 8.0\n.target sm_80\n.visible .entry k()\n{{\n{body}\n ret;\n}}\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (".reg .b32 %r<999999999>;", "999999999 registers"),
        ("add " * 10_000, "more than 20000 characters without ;"),
        ("x\n" * 40_000, "more than 20000 characters without ;"),
    ],
)
def test_what_no_compiler_writes_is_refused(body, said):
    with pytest.raises(InvalidInput, match=said):
        parse(KERNEL.format(body=body))


def test_scopes_and_labels_within_each_other_are_read_in_time():
    many = 1_500
    began_s = thread_time()
    opened = "".join(f"$L{number}: {{\n" for number in range(many))
    program = parse(KERNEL.format(body=opened + "ret;\n" + "}\n" * many))

    assert [each.opcode for each in program.code] == ["ret", "ret", "ret"]
    assert thread_time() - began_s < 5, "each label with its scope copied all that follow"
