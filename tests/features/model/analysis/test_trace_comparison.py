"""A step of a trace next to its prediction: what is one step, which part each operation is, and what is said of it."""

import json
import re

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis.own_module import predict_model
from gpuexplore.features.model.analysis.trace_comparison import _group_of, compared_step, flops_of, read_step
from tests.features.trace.analysis.made import DATA, H100, as_bytes, event, kernel, launch, operation

MOST = 10**8
GPT2 = {"gpu": "h100", "task": "prefill", "batch": "1", "tokens": "512"}


@pytest.fixture(scope="module")
def prediction():
    return predict_model("gpt2", **GPT2)


def step_events(prediction, *, start_us=0.0, gap_us=0.0, rows=1, slower=1.0, first=0):
    """Return a pass as predicted, in eager mode: queries, keys and values are three products; with gaps between."""
    calls = []
    for part, part_s in prediction.prefill.parts:
        lengths = re.fullmatch(r"linear (\d+) → (\d+)", part.name)
        each_us = part_s / part.count * 1e6 * prediction.prefill.seconds[part.group]
        each_us /= sum(other_s for other, other_s in prediction.prefill.parts if other.group == part.group)
        if not lengths:
            name, dims, count = ("aten::_flash_attention_forward" if part.group == "attention" else "aten::add"), (), 1
            calls += [(name, dims, each_us * (slower if part.group == "elementwise" else 1.0))] * part.count
            continue
        terms, columns = map(int, lengths.groups())
        count = 3 if columns == 3 * terms else 1
        length = rows * round(part.flop_count / (2 * terms * columns))
        dims = (length, terms), (terms, columns // count)
        calls += [("aten::mm", dims, each_us / count)] * (count * part.count)
    events = []
    at_us = start_us
    for number, (name, dims, time_us) in enumerate(calls, start=first + 1):
        events += [operation(name, at_us, 2.0, number, *dims), launch(at_us + 0.5, number, number)]
        events.append(kernel(name, at_us + 1.0, time_us, number, number))
        at_us += time_us + gap_us
    return events, at_us


def seen_of(events, prediction, **changes):
    trace = {"deviceProperties": [H100], "traceEvents": events} | changes
    return read_step("t.json", as_bytes(trace), MOST, [flops_of(prediction.prefill)])


def test_products_are_matched_by_their_shapes_and_queries_keys_and_values_to_the_one_of_them(prediction):
    events, _ = step_events(prediction)

    found = compared_step(prediction, seen_of(events, prediction))

    rows = {row["part"]: row for row in found["operations"] if row["group"] == "products"}
    assert (rows["linear 768 → 2304"]["predicted_calls"], rows["linear 768 → 2304"]["seen_calls"]) == (12, 36)
    assert [row["part"] for row in rows.values() if row["predicted_s"] is None] == []
    assert rows["linear 768 → 3072"]["ratio"] == pytest.approx(1.0, rel=0.01)
    assert found["flop_ratio"] == pytest.approx(1.0)
    assert "as predicted: matrix products" in found["sentence"]
    assert {row["group"]: row["seen_calls"] for row in found["groups"]}["attention"] == 12


def test_idle_time_is_what_the_difference_is_where_kernels_are_far_apart(prediction):
    events, _ = step_events(prediction, gap_us=100.0)

    found = compared_step(prediction, seen_of(events, prediction))

    assert re.search(r"of the difference is in idle time between \d+ kernels \(launch-bound\)", found["sentence"])


def test_a_slow_group_is_named_with_its_ratio(prediction):
    events, _ = step_events(prediction, slower=40.0)

    assert "element-wise operations, 40 times" in compared_step(prediction, seen_of(events, prediction))["sentence"]


def test_trace_of_another_batch_is_said_to_be_of_another_request(prediction):
    events, _ = step_events(prediction, rows=3)

    found = compared_step(prediction, seen_of(events, prediction))

    assert found["sentence"].startswith("This trace is not of this request: its products have 3.0 times as many FLOPs;")
    assert found["flop_ratio"] == pytest.approx(3.0)

    larger = predict_model("gpt2-xl", **GPT2)
    assert re.search(r"products have [\d.]+ % of the FLOPs", compared_step(larger, seen_of(events, larger))["sentence"])


def test_as_many_flops_in_products_of_other_rows_are_another_request(prediction):
    longer = predict_model("gpt2", **GPT2 | {"tokens": "1024"})
    events = []
    at_us = 0.0
    for repeat in range(2):
        more, at_us = step_events(prediction, start_us=at_us, first=1000 * repeat)
        events += more

    found = compared_step(longer, seen_of(events, longer))

    assert found["flop_ratio"] == pytest.approx(1.0, rel=0.01)
    assert "have other rows in it, batch × tokens" in found["sentence"]


def test_repeated_steps_without_markers_are_one_of_them(prediction):
    events = []
    at_us = 0.0
    for repeat in range(4):
        more, at_us = step_events(prediction, start_us=at_us, first=1000 * repeat, gap_us=1000.0 * (repeat == 0))
        events += more

    seen = seen_of(events, prediction)

    assert seen.choice == "the median of 4 repetitions"
    assert compared_step(prediction, seen)["ratio"] == pytest.approx(0.65, abs=0.01)  # all but the host


def test_work_of_before_the_marker_is_of_no_step_and_time_starts_when_the_gpu_is_free_of_it(prediction):
    events, end_us = step_events(prediction, start_us=1000.0)
    marker = event("user_annotation", "ProfilerStep#5", 900.0, end_us - 900.0)
    before = kernel("sm90_xmma_gemm", 0.0, 1000.0, 9999)

    seen = seen_of([marker, before, *events], prediction)

    assert seen.step_s == pytest.approx((end_us - 1000.0) * 1e-6, rel=0.01)
    assert seen.kernels == sum(each["cat"] == "kernel" for each in events)


def test_without_shapes_it_is_unknown_whether_it_is_of_the_request(prediction):
    events, _ = step_events(prediction)
    for each in events:
        each["args"].pop("Input Dims", None)

    found = compared_step(prediction, seen_of(events, prediction))

    assert (found["seen_flop_count"], found["flop_ratio"]) == (None, None)
    assert any("record_shapes=True" in note for note in found["notes"])
    assert found["sentence"].startswith("If this trace is of this request, which needs shapes to be checked: ")
    assert {row["group"]: row["seen_calls"] for row in found["groups"]}["products"] == 73


def test_only_the_busiest_gpu_of_a_trace_counts(prediction):
    events, _ = step_events(prediction)
    other = [kernel("gemm", 0.0, 1.0, 7777, device=1)]

    assert seen_of([*events, *other], prediction).kernels == seen_of(events, prediction).kernels


def test_trace_of_a_cpu_counts_nested_operations_once_and_an_optimizers_as_its_own():
    seen = read_step("encoder_layer.json.gz", DATA.read_bytes(), MOST)

    assert not seen.is_gpu
    assert seen.dtype == "fp32"
    assert sum(each.time_s for each in seen.operations) + seen.idle_s == pytest.approx(seen.step_s)
    assert {each.group for each in seen.operations} >= {"products", "attention", "elementwise", "host"}


def test_trace_of_another_device_and_dtype_says_so(prediction):
    found = compared_step(prediction, read_step("encoder_layer.json.gz", DATA.read_bytes(), MOST))

    assert found["notes"][0] == "The trace is of a CPU, the prediction of H100 SXM5 80GB."
    assert "Products are in fp32 in the trace, in bf16 in the prediction." in found["notes"]
    json.dumps(found)


def test_communication_counts_as_far_as_nothing_else_runs(prediction):
    events, end_us = step_events(prediction)
    nccl = kernel("ncclDevKernel_AllReduce", end_us - 50.0, 150.0, 8888, stream=20)

    found = compared_step(prediction, seen_of([*events, nccl], prediction))

    seen_s = {row["group"]: row["seen_s"] for row in found["groups"]}["communication"]
    assert seen_s == pytest.approx(100e-6, abs=20e-6)


def test_marker_without_anything_in_it_is_refused():
    events = [event("user_annotation", "ProfilerStep#5", 900.0, 10.0), event("cpu_op", "aten::mm", 0.0, 5.0)]

    with pytest.raises(InvalidInput, match="nothing ran in the step"):
        read_step("t.json", as_bytes({"traceEvents": events}), MOST)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32", "products"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV", "products"),
        ("triton_poi_fused_addmm_relu_0", "elementwise"),
        ("void at::native::vectorized_elementwise_kernel<4>", "elementwise"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<>", "optimizer"),
        ("vllm::rotary_embedding_kernel", "elementwise"),
    ],
)
def test_kernels_without_an_operation_are_classed_by_their_names(name, group):
    assert _group_of(name)[0] == group
