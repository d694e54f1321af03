"""The code of one implementation, of a file with several."""

from gpuexplore.operations.sources import code_of

MODULE = '''"""A module."""

from a import b, c

LIMIT = 3


@b
def first():
    return LIMIT


# of the second
def second():
    return c


@overload(first)
def _third():
    pass
'''


def test_what_a_name_uses_is_kept_and_nothing_else():
    assert code_of(MODULE, frozenset({"second"})) == (
        '"""A module."""\n\nfrom a import c\n\n\n# of the second\ndef second():\n    return c\n'
    )
    kept = code_of(MODULE, frozenset({"first"}))
    assert kept == MODULE.replace(", c", "").replace("# of the second\ndef second():\n    return c\n\n\n", "")
