"""Regular expressions take time in proportion to their text, whatever a stranger writes into it.

Texts are made from the parse tree of each pattern: what its repeats match, again and again, after what leads there; and
beginnings of what the whole matches, so that each place of a search begins a match that fails far behind it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from re import _constants as code  # the parse tree has no public names: without them this test does not run
from re import _parser as parser
from time import thread_time

import pytest

import gpuexplore

PACKAGE = Path(gpuexplore.__file__).parent
FOLDERS = sorted({path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")})
SEARCHES = {"search", "finditer", "findall", "sub", "split"}
SHORT = 10_000  # characters, and four times as many
LINEAR, QUICK_S = 8.0, 0.1  # times as long, of 4 where it is linear; a quadratic one takes seconds
CHARACTERS = "aZ0 _-./:\n\t,;{([%$x"
MOST_CUTS = 20
NO_MATCH = "\x00"


def calls_of_re(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "re":
                yield node, node.func.attr


def compiled_patterns(path: Path, tree: ast.AST) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the names of a module's patterns, each alone or in a dictionary, with the patterns."""
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.Assign | ast.AnnAssign) and any(name == "compile" for _, name in calls_of_re(node)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            assert isinstance(target, ast.Name), f"{path}:{node.lineno}"
            module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
            values = getattr(module, target.id)
            for pattern in values.values() if isinstance(values, dict) else [values]:
                if isinstance(pattern, re.Pattern):
                    yield target.id, pattern


@cache
def methods_by_name() -> dict[str, set[str]]:
    """Return the methods that are called of each name in capitals, anywhere in the package."""
    used: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for owner, attribute in re.findall(r"\b([A-Z_]+)\.([a-z]+)", path.read_text(encoding="utf-8")):
            used.setdefault(owner, set()).add(attribute)
    return used


def patterns_in(folder: str) -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Yield the patterns in the files of a folder: their places, and the methods that are called of their names."""
    for path in sorted((PACKAGE / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if "import re\n" in text else "")
        place = path.relative_to(PACKAGE.parent)
        for name, pattern in compiled_patterns(path, tree):
            yield f"{place}:{name}", pattern, methods_by_name().get(name, SEARCHES)
        for call, name in calls_of_re(tree):
            if name != "compile" and call.args and isinstance(call.args[0], ast.Constant):
                yield f"{place}:{call.lineno}", re.compile(call.args[0].value), {name}


def matching(tree, repeats, before="", groups=None) -> str:
    """Return a short text that matches; append to `repeats` what leads to each repeat, and what it repeats."""
    groups = {} if groups is None else groups
    text = ""
    for kind, value in tree:
        leads = before + text
        if kind in OF_ONE_CHARACTER:
            text += OF_ONE_CHARACTER[kind](value)
        elif kind is code.BRANCH:
            text += next(iter([matching(branch, repeats, leads, groups) for branch in value[1]]))
        elif kind is code.SUBPATTERN:
            groups[value[0]] = matching(value[3], repeats, leads, groups)
            text += groups[value[0]]
        elif kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            least, most, body = value
            again = matching(body, repeats, leads, groups)
            repeats += [(leads, again)] * (most > 20)
            text += again * max(least, int(most > 20))
        elif kind is code.GROUPREF:
            text += groups.get(value, "")
        elif kind is code.ATOMIC_GROUP:
            text += matching(value, repeats, leads, groups)
        elif kind is code.ASSERT:
            matching(value[1], repeats, leads, groups)
        else:
            assert kind in (code.ASSERT_NOT, code.AT), kind
    return text


def one_of(members) -> str:
    negated = members[0][0] is code.NEGATE
    literals = [chr(value if kind is code.LITERAL else value[0]) for kind, value in members
                if kind in (code.LITERAL, code.RANGE)]  # fmt: skip
    for character in (*([] if negated else literals), *CHARACTERS):
        if any(is_member(character, kind, value) for kind, value in members) != negated:
            return character
    raise AssertionError(members)


def is_member(character, kind, value) -> bool:
    if kind is code.LITERAL:
        return ord(character) == value
    if kind is code.RANGE:
        return value[0] <= ord(character) <= value[1]
    if kind is code.NEGATE:
        return False
    is_in = {
        code.CATEGORY_DIGIT: character.isdigit(),
        code.CATEGORY_SPACE: character.isspace(),
        code.CATEGORY_WORD: character.isalnum() or character == "_",
    }
    opposite = {
        code.CATEGORY_NOT_DIGIT: code.CATEGORY_DIGIT,
        code.CATEGORY_NOT_SPACE: code.CATEGORY_SPACE,
        code.CATEGORY_NOT_WORD: code.CATEGORY_WORD,
    }
    return is_in[value] if value in is_in else not is_in[opposite[value]]


OF_ONE_CHARACTER = {
    code.LITERAL: chr,
    code.NOT_LITERAL: lambda value: "b" if value == ord("a") else "a",
    code.ANY: lambda _: "a",
    code.IN: one_of,
}


def worst_texts(pattern: re.Pattern[str]) -> Iterator[Callable[[int], str]]:
    repeats: list[tuple[str, str]] = []
    whole = matching(parser.parse(pattern.pattern, pattern.flags), repeats)
    again = {" ", "0", whole, *(whole[:cut] for cut in range(1, len(whole), 1 + len(whole) // MOST_CUTS))}
    for before, repeated in repeats:
        again |= {before, before + repeated}
        for spaced in (repeated, repeated + " ", repeated + "\n"):
            yield lambda size, before=before, spaced=spaced: before + many(spaced, size)
    for piece in sorted(filter(None, again)):
        yield lambda size, piece=piece: many(piece, size)


def many(piece: str, size: int) -> str:
    return piece * (size // max(1, len(piece))) + NO_MATCH


def seconds(pattern: re.Pattern[str], text: str, used: set[str]) -> float:
    began_s = thread_time()
    if used & SEARCHES:
        for _ in pattern.finditer(text):
            pass
    pattern.match(text)
    pattern.fullmatch(text)
    return thread_time() - began_s


def is_linear(pattern, used, text, short=SHORT, quick_s=QUICK_S) -> bool:
    long_s = seconds(pattern, text(4 * short), used)
    return long_s < quick_s or long_s < LINEAR * seconds(pattern, text(short), used)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_takes_a_pattern_longer_than_in_proportion(folder):
    for place, pattern, used in patterns_in(folder):
        for text in worst_texts(pattern):
            assert is_linear(pattern, used, text), f"{place}, {pattern.pattern}: {text(40)!r}..."


def test_patterns_are_found_where_they_are_compiled_and_where_they_are_used_at_once():
    found = {place: used for place, _, used in patterns_in("jobs")}

    assert found["gpuexplore/jobs/server_settings.py:_ORIGIN"] == {"fullmatch"}
    assert [used for place, used in found.items() if "locks.py" in place] == [{"sub"}]


@pytest.mark.parametrize("planted", [r"(\d+) bytes", r"^\s*\.target", r"\{\{(.*?)\}\}"])
def test_a_pattern_that_takes_longer_is_found(planted):
    pattern = re.compile(planted, re.MULTILINE | re.DOTALL)
    assert not all(is_linear(pattern, SEARCHES, text, SHORT // 4, QUICK_S / 16) for text in worst_texts(pattern))
