"""What follows from a trace: times that add up, work, the roof, and sentences."""

import gzip
import json

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.trace.analysis.headline import headline, notes, report
from gpuexplore.hardware import accelerator_named, as_device
from tests.analysis.made import device
from tests.features.trace.analysis.made import (
    DATA,
    H100,
    as_bytes,
    event,
    gpu_trace,
    kernel,
    launch,
    operation,
    table_from,
)

ON_H100 = as_device(accelerator_named("NVIDIA H100 80GB HBM3"))


def table(trace=None, **on):
    return table_from(trace or gpu_trace(), **on)


def rows(found):
    return {row.operation: row for row in found.rows}


def of_a_cpu(*events):
    return {"traceEvents": list(events)}


def test_kernels_belong_to_the_operation_that_launched_them_and_their_times_add_up():
    found = table()
    named = rows(found)

    assert named["aten::addmm"].gpu_s == pytest.approx(200e-6), "by its external id"
    assert named["aten::add"].gpu_s == pytest.approx(150e-6), "by the correlation of the launch within it"
    assert named["aten::copy_"].gpu_s == pytest.approx(50e-6), "a copy is work too"
    assert named["aten::linear"].gpu_s == named["cudaLaunchKernel"].gpu_s == 0
    assert "ProfilerStep#1" not in named
    assert found.total_s == found.busy_s == pytest.approx(400e-6)
    assert sum(row.share for row in found.rows) == pytest.approx(1)
    assert found.span_s == pytest.approx(450e-6)
    assert [row.operation for row in found.rows][:3] == ["aten::addmm", "aten::add", "aten::copy_"]


def test_a_kernel_of_no_known_operation_has_a_row_of_its_own():
    stray = kernel("lost", 500.0, 100.0, 99)
    found = table(gpu_trace(traceEvents=[*gpu_trace()["traceEvents"], stray]))

    assert rows(found)["lost"].gpu_s == pytest.approx(100e-6)
    assert found.total_s == pytest.approx(500e-6)


def test_work_and_the_share_of_the_roof_are_those_worked_out_by_hand():
    product, addition = (rows(table())[name] for name in ("aten::addmm", "aten::add"))
    peak, memory = ON_H100.peak("bf16", "matrix").flop_per_s, ON_H100.bandwidth.bytes_per_s

    assert product.flop_count == 2 * 4096**3
    assert product.byte_count == 2 * (4096 + 3 * 4096**2)
    assert product.roof_share == pytest.approx(2 * 4096**3 / peak / 200e-6)
    assert (product.least.bound, addition.least.bound) == ("compute", "memory")
    assert addition.byte_count == 2 * 3 * 8192**2
    assert addition.roof_share == pytest.approx(addition.byte_count / memory / 150e-6)
    assert addition.flop_count is None, "an element-wise operation is judged by the bytes it moves"


def test_work_that_was_left_to_another_operation_is_counted_once():
    found = rows(table())

    assert found["aten::linear"].flop_count is found["aten::linear"].byte_count is None
    assert found["aten::linear"].counterpart is None
    assert found["aten::addmm"].counterpart.run_command.endswith("linear --shape b=4096,d=4096,k=4096 --dtype bf16")


def test_the_headline_says_where_the_time_goes_and_the_notes_what_is_unknown():
    found = table()

    assert headline(found).startswith(
        "50.0 % of 400 µs of kernel time on H100 SXM5 80GB is in matrix products (aten::addmm)"
    )
    assert headline(found).endswith("they reach 69.5 % of the roof.")
    told = "\n".join(notes(found))
    assert "as the trace states" in told
    assert "in 88.9 % of the 450 µs" in told
    assert "For 12.5 % of the time no roof is known" in told


def test_products_of_fp32_on_tensor_cores_are_compared_with_tf32():
    shapes = (4096, 4096), (4096, 4096)
    events = [operation("aten::mm", 0.0, 9.0, 1, *shapes, kind="float"), launch(1.0, 5, 1)]
    used, unused = (
        rows(table(gpu_trace(traceEvents=[*events, kernel(name, 9.0, 400.0, 5, 1)])))["aten::mm"]
        for name in ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n", "ampere_sgemm_128x64_tn")
    )

    assert used.roof_share == pytest.approx(2 * 4096**3 / ON_H100.peak("tf32", "matrix").flop_per_s / 400e-6)
    assert used.counterpart.dtype == "tf32"
    assert unused.counterpart.dtype == "fp32"


def test_what_is_above_the_roof_is_named_with_what_may_explain_it():
    events = [operation("aten::mm", 0.0, 9.0, 1, (4096, 4096), (4096, 4096)), kernel("fast", 9.0, 10.0, 5, 1)]

    assert "Above the roof: aten::mm." in "\n".join(notes(table(gpu_trace(traceEvents=events))))


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ([], "the trace does not name its GPU"),
        ([H100 | {"name": "Nobody's card"}], "no row is called"),
        ([H100 | {"numSms": 114}], "the driver counts 114 multiprocessors"),
        ([H100 | {"id": 3}, H100 | {"id": 4, "name": "Tesla T4"}], "different GPUs in one trace have no common roof"),
        ("nonsense", "the trace does not name its GPU"),
        ([{}, None, {"id": "x"}], "the trace does not name its GPU"),
    ],
)
def test_without_a_known_gpu_no_roof_is_known_and_the_user_can_say_which(properties, told):
    made = gpu_trace(deviceProperties=properties)
    unknown, named = table(made), table(made, gpu="NVIDIA H100 80GB HBM3")

    assert told in "\n".join(notes(unknown))
    assert not any(row.roof_share for row in unknown.rows)
    assert headline(unknown).endswith("the share of the roof is unknown.")
    assert rows(named)["aten::addmm"].roof_share == rows(table())["aten::addmm"].roof_share


def test_the_number_of_multiprocessors_is_taken_from_where_cuda_states_it():
    made = table(gpu_trace(deviceProperties=[H100 | {"numSms": 233_472, "multiProcessorCount": 132}]))

    assert made.on.device


def test_launches_without_kernels_leave_the_gpu_unknown():
    events = [each for each in gpu_trace()["traceEvents"] if each["cat"] not in ("kernel", "gpu_memcpy")]
    without = [each for each in events if each["cat"] != "cuda_runtime"]

    assert "what the GPU did is unknown" in "\n".join(notes(table(gpu_trace(traceEvents=events))))
    assert "what the GPU did is unknown" not in "\n".join(notes(table(gpu_trace(traceEvents=without))))


def test_unlike_gpus_have_no_common_roof():
    other = H100 | {"id": 1, "name": "Tesla T4"}
    events = [*gpu_trace()["traceEvents"], kernel("k", 500.0, 1.0, 30, device=1)]

    assert "no common roof" in "\n".join(notes(table(gpu_trace(deviceProperties=[H100, other], traceEvents=events))))


@pytest.mark.parametrize(
    ("trace", "on", "message"),
    [
        (None, {"gpu": "nope"}, "gpu 'nope': expected names and keys"),
        (None, {"device": "cuda:0"}, "device 'cuda:0': expected cpu"),
        (None, {"device": "cpu"}, "this trace has GPU kernels"),
        (of_a_cpu(operation("aten::mm", 0.0, 1.0, 1)), {"gpu": "t4"}, "no GPU kernels"),
    ],
)
def test_a_device_that_cannot_be_is_refused(trace, on, message):
    with pytest.raises(InvalidInput, match=message):
        table(trace, **on)


def test_a_cpu_has_a_roof_only_where_the_user_says_that_it_is_this_one():
    made = of_a_cpu(operation("aten::mm", 0.0, 100.0, 1, (100, 100), (100, 100), kind="float"))
    (unknown,), (known,) = table(made).rows, table(made, device="cpu", here=[device()]).rows

    assert unknown.roof_share is None
    assert known.roof_share == pytest.approx(2e6 / 1e12 / 100e-6)


def test_self_times_leave_out_what_was_called_within_on_the_same_thread():
    outer, inner = event("cpu_op", "outer", 0.0, 100.0), event("cpu_op", "inner", 10.0, 30.0)
    other = event("cpu_op", "other", 20.0, 30.0) | {"tid": 2}
    overlapping = event("cpu_op", "overlapping", 90.0, 30.5)
    found = rows(table(of_a_cpu(outer, inner, other, overlapping)))
    cut = rows(table(of_a_cpu(event("cpu_op", "outer", 0, 10), event("cpu_op", "inner", 2, 9))))
    expected_us = {"outer": 70.0, "inner": 30.0, "other": 30.0, "overlapping": 30.5}

    assert {name: round(row.time_s * 1e6, 3) for name, row in found.items()} == expected_us
    assert cut["outer"].time_s == pytest.approx(1e-6), "a child that was cut to whole microseconds is still within"


def test_without_shapes_there_are_times_and_a_sentence_on_what_to_do():
    bare = event("cpu_op", "aten::mm", 0.0, 100.0, **{"External id": 1})
    found = table(of_a_cpu(bare, bare | {"ts": 200.0}))
    (row,) = found.rows

    assert (row.calls, row.shapes, row.flop_count, row.counterpart) == (2, None, None, None)
    assert row.time_s == pytest.approx(200e-6)
    assert "record_shapes=True" in "\n".join(notes(found))


def test_events_that_take_no_time_have_no_share():
    found = table(of_a_cpu(event("cpu_op", "aten::mm", 0.0, 0.0)))

    assert headline(found) == "This trace contains no CPU time."
    assert found.rows[0].share is None
    assert json.dumps(report(found), allow_nan=False)


def test_a_real_trace_adds_up_to_what_torch_said_of_it():
    said = json.loads(gzip.decompress(DATA.read_bytes()))["self_cpu_us"]
    found = table_from(DATA.read_bytes())
    by_name = dict.fromkeys(said, 0.0)
    for row in found.rows:
        by_name[row.operation] += row.self_cpu_s * 1e6

    assert by_name == pytest.approx(said, abs=0.01)
    assert found.total_s * 1e6 == pytest.approx(sum(said.values()), rel=1e-6)


def test_the_report_says_everything_and_is_strict_json():
    told = json.loads(json.dumps(report(table()), allow_nan=False))
    (first, *_) = told["rows"]

    assert told["headline"] == headline(table())
    assert first["operation"] == "aten::addmm"
    assert first["predict"].startswith("gpuexplore predict linear --gpu h100-sxm5-80gb --shape b=4096")
    assert first["predict"].endswith("--calls graph"), "the profiler tells the time of the kernels, without launches"
    assert first["counterpart"]["shape"] == {"b": 4096, "d": 4096, "k": 4096}
    assert told["device"]["key"] == "h100-sxm5-80gb"
