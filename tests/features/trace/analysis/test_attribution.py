"""Kernels and what launched them: graphs, regions, processes that were merged, and stamps that cannot be."""

import pytest

from gpuexplore.features.trace.analysis.headline import headline, notes
from tests.features.trace.analysis.made import H100, as_bytes, called, event, gpu_trace, kernel, launch, table_from

BIG = ((4096, 4096), "c10::BFloat16")


def table(*events):
    return table_from({"deviceProperties": [H100], "traceEvents": list(events)})


def times_us(found):
    """Return the calls and the time on the GPU of what took any."""
    return {row.operation: (row.calls, round(row.gpu_s * 1e6, 3)) for row in found.rows if row.gpu_s}


def layers(count, correlation, **known):
    """Return the kernels of so many layers, one after the other."""
    parts = (("gemm", 300.0), ("attention", 90.0), ("norm", 10.0))
    return [
        kernel(name, 50.0 + 401.0 * layer + {"gemm": 0, "attention": 300, "norm": 390}[name], time_us, correlation)
        | known
        for layer in range(count)
        for name, time_us in parts
    ]


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
@pytest.mark.parametrize("around", [event("user_annotation", "decode", 0.0, 400.0), called("aten::mm", BIG, BIG)])
def test_kernels_of_a_graph_have_their_own_names(name, around):
    found = table(around, launch(5.0, 801, 1, name), *layers(4, 801))

    assert times_us(found) == {"gemm": (4, 1200.0), "attention": (4, 360.0), "norm": (4, 40.0)}
    assert headline(found).startswith(
        "75.0 % of 1.60 ms of kernel time on H100 SXM5 80GB is in matrix products (gemm);"
    )
    assert found.total_s == pytest.approx(1600e-6)


def test_a_node_of_a_graph_is_known_by_its_number_and_a_wrong_external_id_yields_to_the_launch():
    node = kernel("gemm", 50.0, 300.0, 7, 1)
    node["args"]["graph node id"] = 12

    assert times_us(table(called("aten::mm", BIG, BIG), node)) == {"gemm": (1, 300.0)}

    stranger = called("aten::relu", BIG, number=55)
    inner = called("aten::mm", BIG, BIG, start_us=30.0, number=2)
    found = table(stranger, inner, launch(32.0, 55), kernel("gemm", 60.0, 50.0, 55, 55))

    assert times_us(found) == {"aten::mm": (1, 50.0)}


@pytest.mark.parametrize(
    "region",
    [
        event("user_annotation", "prefill", 0.0, 30.0, **{"External id": 1}),
        event("cpu_op", "Torch-Compiled Region: 0/1", 0.0, 30.0, **{"External id": 1}),
        event("cpu_op", "ProfilerStep#3", 0.0, 30.0, **{"External id": 1}),
    ],
)
def test_kernels_of_a_region_of_many_operations_have_their_own_names(region):
    inner = called("aten::mm", BIG, BIG, start_us=5.0, number=2) | {"dur": 5.0}
    events = [region, inner, launch(6.0, 11, 2), launch(12.0, 12, 1)]
    found = table(*events, kernel("gemm", 40.0, 50.0, 11, 2), kernel("triton_red_fused_0", 100.0, 60.0, 12, 1))

    assert times_us(found) == {"aten::mm": (1, 50.0), "triton_red_fused_0": (1, 60.0)}


def rank(number, pid, device, name, time_us, label=""):
    """Return what one process wrote: an operation and its kernel, under the numbers that every process gives."""
    host = {"pid": f"{label}{pid}", "tid": pid}
    call = called(name, BIG, BIG, number=1)
    work = kernel("k", 40.0 + number, time_us, 11, 1, device=device)
    return [call | host, launch(5.0 + number, 11, 1) | host, work | {"pid": f"{label}{device}" if label else device}]


@pytest.mark.parametrize("label", ["", "[rank {}] "])
@pytest.mark.parametrize("devices", [(0, 1), (1, 0), (0, 0)])
@pytest.mark.parametrize("order", ["one after the other", "by kind", "by time"])
def test_numbers_are_matched_within_their_process(label, devices, order):
    first = rank(0, 100, devices[0], "aten::mm", 50.0, label.format(0))
    second = rank(1, 200, devices[1], "aten::add", 70.0, label.format(1))
    events = [*first, *second]
    if order == "by kind":
        events = [*first[:2], *second[:2], first[2], second[2]]
    if order == "by time":
        events.sort(key=lambda event: event["ts"])
    found = table(*[each | {"args": each["args"] | {"stream": each["pid"]}} for each in events])
    is_one_stream = devices == (0, 0) and not label
    times = times_us(found)

    assert times["aten::add"] == (1, 70.0)
    assert times["aten::mm"] == (1, 1.0 if is_one_stream else 50.0)
    assert "2 processes are in this trace" in " ".join(notes(found))


def test_a_process_with_several_gpus_is_one():
    work = [kernel("k", 40.0, 50.0, 11, 1), kernel("k", 40.0, 60.0, 12, 1, device=1)]
    found = table(called("aten::mm", BIG, BIG), launch(5.0, 11, 1), launch(8.0, 12, 1), *work)

    assert times_us(found) == {"aten::mm": (1, 110.0)}
    assert "processes" not in " ".join(notes(found))


def three(second_launch="cudaLaunchKernel", **changes):
    """Return three kernels on a stream; the first one's end stamp is 900 us late."""
    events = [
        *(called("aten::mm", BIG, BIG, start_us=30.0 * at, number=at + 1) for at in range(3)),
        *(launch(30.0 * at + 5, 11 + at, at + 1, second_launch if at else "cudaLaunchKernel") for at in range(3)),
    ]
    work = [kernel("k", 200.0, 1000.0, 11, 1), kernel("k", 300.0, 50.0, 12, 2), kernel("k", 351.0, 49.0, 13, 3)]
    return [*events, *(each | changes for each in work)]


@pytest.mark.parametrize("name", ["cudaLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel"])
def test_an_end_after_the_next_ones_start_is_bounded_by_it_and_said(name):
    found = table(*three(name))

    assert found.total_s == pytest.approx((100 + 50 + 49) * 1e-6)
    assert found.span_s == pytest.approx(400e-6)
    assert "1 kernel ends after the next one on the same stream began" in " ".join(notes(found))
    assert "900 µs less than their timestamps state" in " ".join(notes(found))


@pytest.mark.parametrize("name", ["cudaLaunchKernelExC", "cuLaunchKernelEx", "cudaGraphLaunch"])
def test_what_may_overlap_on_one_stream_is_left(name):
    found = table(*three(name))

    assert found.total_s == pytest.approx(1099e-6)
    assert found.contradicted == 0


def test_other_streams_and_rounding_contradict_nothing():
    *events, first, second, third = three()
    apart = [second, third, first | {"args": first["args"] | {"stream": 9}}]
    rounded = [first | {"dur": 101.0}, second, third]

    assert table(*events, *apart).contradicted == 0
    assert table(*events, *rounded).total_s == pytest.approx(200e-6)


def test_kernels_without_any_operation_or_of_torch_before_2_0_are_a_table():
    only = [each for each in gpu_trace()["traceEvents"] if each["cat"] in ("kernel", "gpu_memcpy")]
    found = table(*only)

    assert found.total_s == pytest.approx(400e-6)
    assert len(times_us(found)) == 3
    assert "No operation of torch is in this trace" in " ".join(notes(found))
    assert "as the trace states" in " ".join(notes(found))

    old = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy"}
    events = gpu_trace()["traceEvents"]
    for each in events:
        if each["cat"] != "cpu_op":
            each["args"] = {name.lower(): value for name, value in each["args"].items()}
        each["cat"] = old.get(each["cat"], each["cat"])

    assert times_us(table(*events)) == times_us(table(*gpu_trace()["traceEvents"]))
