"""Files that are no trace, or cannot be one: a sentence each, and no memory is filled."""

import gzip
import json
import random

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.trace.analysis.events import MOST_BYTES, read_trace
from gpuexplore.features.trace.analysis.headline import headline, notes, report
from tests.features.trace.analysis.made import DATA, as_bytes, gpu_trace, operation, table_from

GOOD = as_bytes(gpu_trace())
BAD = {
    "empty": (b"", "the file is empty"),
    "picture": (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "not UTF-8 text: byte 0"),
    "prose": (b"hello", "invalid JSON at line 1"),
    "number": (b"5", "JSON, but not a trace"),
    "other object": (b'{"results": []}', "JSON, but not a trace"),
    "events that are no list": (b'{"traceEvents": {}}', "JSON, but not a trace"),
    "rows of another program": (b'[{"rank": 0, "file": "rank0.json"}]', "JSON, but not a trace"),
    "packed twice": (gzip.compress(gzip.compress(GOOD)), "packed by gzip once"),
    "no events": (b'{"traceEvents": []}', "without torch operations"),
    "events of another program": (
        b'[{"ph": "X", "cat": "v8", "name": "gc", "ts": 1, "dur": 2}]',
        "ProfilerActivity.CPU",
    ),
    "cut off": (GOOD[:-20], "invalid JSON at line 1"),
    "a comma after the last": (GOOD.replace(b"]}", b",]}"), "invalid JSON at line 1"),
    "cut off in a text": (GOOD[: GOOD.index(b"aten") + 2], "so it may have been cut off"),
    "digits": (b'{"traceEvents": [' + b"9" * 5000 + b"]}", "a number that cannot be read"),
    "nested": (b"[" * 200_000, "nested too deep"),
    "damaged gzip": (gzip.compress(GOOD, mtime=0)[:-30], "starts like gzip, but cannot be unpacked"),
    "no gzip": (b"\x1f\x8bhello there, all of you", "starts like gzip, but cannot be unpacked"),
    "ages": (
        as_bytes(gpu_trace(traceEvents=[operation("aten::mm", at, 1.0, 1) for at in (0, 1e16)])),
        "up to 1,000,000",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_what_is_no_trace_is_told_in_a_sentence(content, message):
    with pytest.raises(InvalidInput) as caught:
        read_trace("trace.json", content)

    assert message in str(caught.value)
    assert len(str(caught.value)) < 300
    assert len(str(caught.value).splitlines()) == 1


def test_what_unpacks_to_more_than_is_accepted_is_refused_before_it_is_unpacked():
    bomb = gzip.compress(b"\0" * 50_000_000)

    assert len(bomb) < 100_000
    with pytest.raises(InvalidInput, match="at most 1,000,000 bytes unpacked"):
        read_trace("bomb.json.gz", bomb, 1_000_000)
    with pytest.raises(InvalidInput, match=f"at most {len(GOOD) - 1:,} bytes"):
        read_trace("trace.json", GOOD, len(GOOD) - 1)
    assert MOST_BYTES == 200_000_000


def test_rates_that_are_no_numbers_and_odd_bytes_do_no_harm_and_a_name_that_cannot_be_shown_is_refused():
    events = [*gpu_trace()["traceEvents"], operation("aten::mm", 0.0, float("nan"), 9)]
    odd = GOOD.replace(b"sm90_xmma", b"sm90\xff\x01xmma")

    assert read_trace("t", as_bytes(gpu_trace(bandwidth=float("inf"), traceEvents=events))).left_out == 1
    assert len(read_trace("t", odd).kernels) == 3
    assert read_trace("t", b"\xef\xbb\xbf" + GOOD) == read_trace("t", GOOD)
    with pytest.raises(InvalidInput, match="characters that can be shown"):
        read_trace("a\x1b[31m", GOOD)


def test_plain_and_packed_are_the_same_and_a_bare_list_is_a_trace():
    bare = json.dumps(gpu_trace()["traceEvents"]).encode()

    assert read_trace("t", gzip.compress(GOOD)) == read_trace("t", GOOD)
    assert read_trace("t", bare).calls == read_trace("t", GOOD).calls
    assert read_trace("t", bare).gpus == ()
    assert read_trace("t", DATA.read_bytes()).has_shapes


NONSENSE = (None, "x", -1, 1e400, [], {}, True)


@pytest.mark.parametrize("field", ["ts", "dur", "name"])
@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_an_event_without_a_name_or_a_time_is_left_out_and_counted(field, value):
    broken = operation("aten::mm", 0.0, 1.0, 9) | {field: value}
    trace = read_trace(
        "t",
        json.dumps(gpu_trace(traceEvents=[*gpu_trace()["traceEvents"], broken]))
        .encode()
        .replace(b"Infinity", b"1e999"),
    )
    can_be = (field, value) in (("ts", -1), ("name", "x"))

    assert trace.left_out == (not can_be)


@pytest.mark.parametrize("field", ["args", "pid", "tid", "cat", "ph"])
@pytest.mark.parametrize("value", NONSENSE[:3] + NONSENSE[4:], ids=repr)
def test_other_nonsense_in_an_event_does_no_harm(field, value):
    broken = operation("aten::mm", 0.0, 1.0, 9) | {field: value}
    trace = read_trace("t", as_bytes(gpu_trace(traceEvents=[*gpu_trace()["traceEvents"], broken, value])))

    assert len(trace.calls) in (6, 7)


@pytest.mark.parametrize("name", ["Input Dims", "Input type", "Concrete Inputs", "Input Strides", "External id"])
@pytest.mark.parametrize("value", [None, "x", -1, [], {}, [[[1]], "a"], [[-1, True], [1.5]], [[10**30]]], ids=repr)
def test_nonsense_among_the_arguments_is_unknown(name, value):
    broken = operation("aten::mm", 0.0, 1.0, 9, (2, 3), (3, 4))
    broken["args"][name] = value
    trace = read_trace("t", as_bytes(gpu_trace(traceEvents=[broken])))

    assert len(trace.calls) == 1
    assert trace.left_out == 0


ANYTHING = (None, "", 0, -1, 1, 2**61, 1e300, 1e17, True, [], {}, "x", [[]], [0], "[0, 0]", "True", [2**61] * 5)


def damaged(value, chance):
    """Return `value` with some of what is in it replaced by anything."""
    if chance.random() < 0.03:
        return chance.choice(ANYTHING)
    if isinstance(value, dict):
        return {name: damaged(each, chance) for name, each in value.items()}
    return [damaged(each, chance) for each in value] if isinstance(value, list) else value


def told(content):
    """Return what is said of a file: its headline, or why it is refused."""
    try:
        found = table_from(content)
    except InvalidInput as error:
        return str(error)
    assert json.dumps(report(found), allow_nan=False)
    return headline(found) + " ".join(notes(found))


@pytest.mark.parametrize("seed", range(40))
def test_whatever_stands_in_a_trace_it_is_a_table_or_a_sentence(seed):
    chance = random.Random(seed)
    real = json.loads(gzip.decompress(DATA.read_bytes()))["traceEvents"]

    assert told(as_bytes(damaged(gpu_trace(), chance)))
    assert told(as_bytes(damaged({"traceEvents": chance.sample(real, 100)}, chance)))


def test_calls_nested_ever_deeper_are_read_in_one_pass():
    events = [operation("aten::add", at, 1e6 - 2 * at, at + 1, (4,), (4,)) for at in range(10_000)]

    assert "100 % of" in told(as_bytes({"traceEvents": events}))
