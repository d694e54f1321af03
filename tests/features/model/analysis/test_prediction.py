"""Predicted speed of whole models: against published steps, against itself, and what it says of what cannot be."""

import csv
import re
from dataclasses import replace
from importlib.resources import files
from math import log
from statistics import median

import pytest

import gpuexplore as gx
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis.answers import (
    _collectives_of,
    _scaling_of,
    batch_words,
    compared,
    cost_words,
    headline,
    mfu_by_definition,
    rows_of,
    scaling_words,
)
from gpuexplore.features.model.analysis.config import layers_of
from gpuexplore.features.model.analysis.models import model_named, model_of_text
from gpuexplore.features.model.analysis.network import link_of
from gpuexplore.features.model.analysis.plan import ModelPlan, plan_of
from gpuexplore.features.model.analysis.prediction import (
    by_batch,
    memory_of_each,
    phase_of,
    predict_model,
    saturating,
    usable_bytes_of,
)
from gpuexplore.features.model.analysis.rows import OF_TRAINING, published_steps, read_rows
from gpuexplore.features.model.analysis.step_time import PRIORS, fitted
from gpuexplore.hardware import target_named

H100, A100, L4 = (target_named(key, ()) for key in ("h100-sxm5-80gb", "a100-sxm4-80gb", "l4"))
SERVED = ModelPlan("serve", batch=4, tokens=512)


def predicted(name, device=H100, **plan):
    return predict_model(model_named(name), replace(SERVED, **plan), device)


def test_published_steps_lie_in_their_intervals():
    for task, at_most in (("train", 0.06), ("prefill", 0.05), ("decode", 0.05)):
        steps = [step for step in published_steps() if step.task == task]
        phases = [phase_of(s.terms(), s.model, s.plan, 0.0) for s in steps]
        off = [abs(log(step.step_s / phase.time_s.value)) for step, phase in zip(steps, phases, strict=True)]
        holds = [p.time_s.low <= s.step_s <= p.time_s.high for s, p in zip(steps, phases, strict=True)]

        assert median(off) < at_most
        assert sum(holds) / len(holds) >= 0.85


def test_coefficients_are_within_three_deviations_of_their_priors():
    for name, value in fitted().coefficients.items():
        expected, deviation = PRIORS[name if name in PRIORS else name.partition(":")[0]]

        assert abs(value - expected) < 3 * deviation


def test_collectives_take_about_what_was_published():
    text = (files("gpuexplore.recorded") / "published" / "all_reduce.csv").read_text(encoding="utf-8")
    off = [
        abs(
            log(
                link_of(target_named(row["gpu_key"], ()), int(row["workers"])).all_reduce_s(
                    int(row["bytes"]), int(row["workers"])
                )
                / float(row["median_s"])
            )
        )
        for row in csv.DictReader(text.splitlines())
    ]

    assert median(off) < 0.12


def test_short_all_reduces_of_servers_take_what_their_kernels_do():
    # "custom allreduce" on H100, of 2, 4 and 8 GPUs: https://github.com/sgl-project/sglang/pull/2904
    published = {4096: (3.9, 3.7, 5.7), 262144: (7.9, 13.9, 16.7), 1048576: (19.9, 31.1, 33.8)}
    links = {gpus: link_of(H100, gpus) for gpus in (2, 4, 8)}
    off = [
        abs(log(links[gpus].all_reduce_s(size, gpus, is_served=True) * 1e6 / time_us))
        for size, times_us in published.items()
        for gpus, time_us in zip(links, times_us, strict=True)
    ]

    assert median(off) < 0.2
    assert links[8].all_reduce_s(4096, 8, is_served=True) < 0.3 * links[8].all_reduce_s(4096, 8)
    assert link_of(L4, 2).all_reduce_s(4096, 2, is_served=True) == link_of(L4, 2).all_reduce_s(4096, 2)


def test_a_model_that_does_not_fit_is_said_to_first_with_what_would():
    found = predicted("llama-3-70b", tokens=1000)

    assert found.fits is False
    assert headline(found).startswith(
        "Llama 3 70B in bf16 on H100 SXM5 80GB does not fit: 144 GB a GPU, 82.9 GB usable"
    )
    assert "tensor parallelism over 2 (" in headline(found)
    assert predicted("llama-3-70b", gpus=4, tensor_parallel=4).fits


def test_trainings_that_ran_fit():
    steps = [step for step in published_steps() if step.plan.is_trained]
    shares = [memory_of_each(step.model, step.plan) / usable_bytes_of(step.device) for step in steps]

    assert max(shares) < 1
    assert median(shares) > 0.6  # their micro-batches were chosen to fill the memory


def test_more_bandwidth_fewer_bits_and_more_gpus_make_tokens_faster():
    base, faster, fewer, shared = (
        predicted("llama-3-8b", A100).decode.time_s.value,
        predicted("llama-3-8b", H100).decode.time_s.value,
        predicted("llama-3-8b", A100, weights="int4").decode.time_s.value,
        predicted("llama-3-8b", A100, gpus=2, tensor_parallel=2).decode.time_s.value,
    )

    assert faster < 0.8 * base
    assert 0.25 * base < fewer < 0.7 * base
    assert 0.5 * base < shared < 0.9 * base


@pytest.mark.parametrize(
    ("name", "gpu", "step_s"),
    [("llama-2-7b", "rtx-a6000", 8.71e-3), ("mpt-7b", "rtx-4090", 6.18e-3), ("mpt-30b", "rtx-4090", 20.6e-3)],
)
def test_a_token_with_weights_of_four_bits_takes_what_was_published(name, gpu, step_s):
    # https://github.com/mit-han-lab/llm-awq/blob/048e19e/tinychat/README.md
    device = target_named(gpu, ())
    found = predicted(name, device, task="decode", batch=1, tokens=200, weights="int4", dtype="fp16")
    products = sum(part_s for part, part_s in found.decode.parts if part.group == "products")
    read_s = sum(part.byte_count * part.count for part, _ in found.decode.parts) / device.bandwidth.bytes_per_s

    assert found.decode.time_s.value == pytest.approx(step_s, rel=0.15)
    assert products > 1.1 * read_s  # to widen the weights is not hidden


def test_fused_kernels_write_fp8_before_a_product_that_others_quantise_for():
    seconds = [
        predicted("llama-3-8b", tokens=2000, dtype=dtype, execution=execution).prefill.seconds["products"]
        for dtype in ("fp8", "bf16")
        for execution in ("compiled", "graph")
    ]

    assert seconds[0] / seconds[1] > 1.05 * seconds[2] / seconds[3]


@pytest.mark.parametrize(("execution", "most"), [("eager", 1.001), ("graph", 1.5)])
def test_only_kernels_that_are_fused_take_longer_than_what_they_move(execution, most):
    found = predict_model(model_named("resnet-50"), ModelPlan("train", batch=64, execution=execution), A100).train
    alone = sum(part_s for part, part_s in found.parts if part.group == "elementwise")

    assert most / 1.25 < found.seconds["elementwise"] / alone < most


def test_boards_with_more_power_for_their_peak_keep_their_clock_in_a_step():
    slower = []
    for key in ("rtx-4090", "l40s"):  # one chip: 2.7 and 1 W for each TFLOP/s
        found = predicted("llama-3-8b", target_named(key, ()), task="prefill", tokens=2000).prefill
        slower.append(
            found.seconds["products"] / sum(part_s for part, part_s in found.parts if part.group == "products")
        )

    assert 1 < slower[0] < 0.85 * slower[1]


def test_decoding_one_sequence_is_limited_by_memory_and_prompts_by_arithmetic():
    found = predicted("llama-3-8b", batch=1, tokens=4000)

    assert (found.decode.limit, found.prefill.limit) == ("memory bandwidth", "compute")
    # weights and cache over the bandwidth, at best
    assert found.decode.time_s.low > 16e9 / 3.35e12


def test_a_larger_batch_is_no_slower_in_all_and_no_faster_for_each():
    found = by_batch(model_named("llama-3-8b"), SERVED, H100)
    rates = [each.per_second.value for each in found]

    assert [each.plan.batch for each in found][:4] == [1, 2, 4, 8]
    assert all(each.fits for each in found)
    assert rates == sorted(rates)
    assert saturating(found).plan.batch <= found[-1].plan.batch
    assert "from batch" in batch_words(found)
    assert re.match(r"A million tokens cost \d\.\d\d US dollars \(", cost_words(found[0]))


def test_a_gpu_whose_memory_is_unknown_has_no_largest_batch():
    found = by_batch(model_named("gpt2"), SERVED, target_named("apple-m1", ()), batches=(1, 2))

    assert found[0].fits is None
    assert "fits" not in batch_words(found)


def test_an_encoder_is_trained_or_passed_forward():
    found = predict_model(model_named("bert-base"), ModelPlan("prefill", batch=8, tokens=128), H100)

    assert found.memory_bytes > 2 * found.weights
    assert found.prefill.limit == "compute"


def test_python_issues_small_steps_for_longer_than_a_gpu_computes_them():
    plan = {"task": "decode", "batch": 1, "tokens": 5, "answer": 200}
    graph, eager = (predicted("llama-2-7b", A100, execution=name, **plan) for name in ("graph", "eager"))
    large = predicted("llama-2-7b", A100, execution="eager", task="prefill", batch=8, tokens=2048)

    assert eager.main.limit == "host"
    # https://pytorch.org/blog/accelerating-generative-ai-2/: 25.5, and 104.9 compiled
    assert eager.per_second.low < 25.5 < eager.per_second.high < graph.per_second.value
    assert large.prefill.limit == "compute"


@pytest.mark.parametrize(
    ("name", "plan"),
    [("gpt2", SERVED), ("mixtral-8x7b", replace(SERVED, gpus=8, tensor_parallel=8)), ("vit-b-16", ModelPlan("train"))],
)
def test_batches_that_are_predicted_at_once_are_as_each_alone(name, plan):
    model = model_named(name)
    found = by_batch(model, plan, H100, batches=(1, 6, 64))

    assert len(found) > 1
    for each in found:
        alone = predict_model(model, each.plan, H100)
        assert each.per_second.value == pytest.approx(alone.per_second.value, rel=1e-9)
        assert each.main.seconds == pytest.approx(alone.main.seconds, rel=1e-9)
        assert replace(each, train=None, prefill=None, decode=None) == replace(
            alone, train=None, prefill=None, decode=None
        )


def test_shares_and_operations_add_up_to_the_step():
    found = predict_model(model_named("gpt2"), ModelPlan("train", batch=8, execution="eager"), A100)

    assert sum(found.train.seconds.values()) == pytest.approx(found.train.time_s.value)
    assert sum(row["flop_count"] for row in rows_of(found.train)) == pytest.approx(found.flop_count)


def test_mfu_is_smaller_where_less_is_counted():
    plan = ModelPlan("train", 8, shard="full", batch=4, tokens=4096, checkpoint=True, execution="eager")
    found = mfu_by_definition(predict_model(model_named("llama-2-7b"), plan, A100))

    assert found["dense"] < found["causal"] < found["whole"]
    assert found["hfu"] == pytest.approx(found["causal"] * 4 / 3, rel=0.05)
    assert found["six_n"] == pytest.approx(found["dense"], rel=0.03)


def test_two_equal_predictions_are_no_significant_difference():
    assert "no significant difference" in compared(predicted("llama-3-8b"), predicted("llama-3-8b"))
    assert "times" in compared(predicted("llama-3-8b"), predicted("llama-3-8b", L4))


def test_a_gpu_without_published_steps_has_a_wider_interval_that_says_so():
    known, unknown = (predicted("llama-3-8b", device).decode for device in (A100, L4))

    assert unknown.deviation > known.deviation
    assert "none of these is on l4" in unknown.basis


def test_other_vendors_have_wider_intervals_and_one_without_measurements_the_widest():
    known, amd, apple = (
        predicted("llama-3.2-1b", target_named(key, ())).decode.deviation for key in ("l4", "mi300x", "apple-m1")
    )

    assert known < amd < apple
    assert apple >= 0.6


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"task": "sing"}, "train, prefill, decode, serve"),
        ({"gpus": "0"}, "whole numbers from 1"),
        ({"gpus": "8", "tensor_parallel": "3"}, "divisors of the 8 GPUs"),
        ({"batch": "many"}, "batch 'many'"),
        ({"weights": "int3"}, "int4"),
        ({"task": "train", "weights": "int4"}, "applies to serving only"),
        ({"checkpoint": "yes"}, "applies to training only"),
        ({"network_gbs": "fast"}, "GB/s"),
        ({"colour": "red"}, "setting 'colour'"),
    ],
)
def test_what_was_typed_wrongly_is_named(typed, said):
    with pytest.raises(InvalidInput, match=said):
        plan_of(typed)


@pytest.mark.parametrize(
    ("gpus", "pipeline", "sharing"), [(1, 1, 1), (4, 1, 4), (16, 1, 8), (4, 2, 2), (20, 1, 5), (7, 1, 7)]
)
def test_gpus_of_a_server_share_layers_as_many_as_a_host_has(gpus, pipeline, sharing):
    plan = plan_of({"task": "serve", "gpus": str(gpus), "pipeline": str(pipeline)})

    assert plan.tensor_parallel == sharing
    assert plan_of({"task": "train", "gpus": str(gpus), "pipeline": str(pipeline)}).tensor_parallel == 1


def test_gpus_of_a_model_without_text_have_batches_of_their_own():
    one, eight = (gx.predict_model("resnet-50", task="prefill", gpus=gpus, batch=64) for gpus in (1, 8))

    assert eight.plan.tensor_parallel == 1
    assert eight.per_second.value == pytest.approx(8 * one.per_second.value)
    assert "at batch 64 on each" in headline(eight)


def test_a_dtype_without_units_is_refused():
    with pytest.raises(InvalidInput, match="fp8 on A100"):
        predicted("llama-3-8b", A100, dtype="fp8")


def test_rows_of_a_file_are_read_and_wrong_ones_named():
    good = "mpt-7b,h100-sxm5-80gb,8,2048,6,bf16,85144"
    lines = [",".join(OF_TRAINING), good, good.replace("mpt-7b", "mpt-9b"), good.replace("2048", "x"), "mpt-7b"]
    steps, refused = read_rows(lines)

    assert [step.step_s for step in steps] == [pytest.approx(8 * 6 * 2048 / 85144)]
    assert [line.partition(":")[0] for line in refused] == ["line 3", "line 4", "line 5"]
    with pytest.raises(InvalidInput, match="columns"):
        read_rows(["a,b", "1,2"])


def trained(name="llama-3-8b", device=H100, **plan):
    usual = {"batch": 1, "tokens": 2048, "checkpoint": True, "execution": "eager", "accumulation": 16}
    return predict_model(model_named(name), ModelPlan("train", **(usual | plan)), device)


def test_stages_of_a_pipeline_wait_for_the_first_and_the_last_micro_batch():
    found = trained(gpus=4, pipeline=4)
    seconds = found.train.seconds
    stage = sum(seconds.values()) - seconds["bubble"] - seconds["optimizer"]

    assert seconds["bubble"] == pytest.approx(3 / 16 * stage, rel=0.05)
    assert trained(gpus=4, pipeline=4, accumulation=64).train.seconds["bubble"] == pytest.approx(seconds["bubble"])
    assert found.flop_count == pytest.approx(trained().flop_count)
    assert "a pipeline of 4 stages" in found.train.basis


def test_the_first_stage_keeps_a_micro_batch_for_each_stage_and_weights_are_shared():
    memory = [trained(gpus=4, pipeline=4, accumulation=n, checkpoint=False).memory_bytes for n in (2, 4, 64)]

    assert memory[0] < memory[1] == memory[2]
    assert trained(gpus=8, tensor_parallel=2, pipeline=4).memory_bytes < trained(gpus=4, pipeline=4).memory_bytes
    assert trained(gpus=4, pipeline=4).memory_bytes < 0.4 * trained().memory_bytes


def test_a_request_passes_all_stages_and_several_are_served_at_once():
    def served(**plan):
        return predicted("llama-3-70b", tokens=512, **plan)

    one, staged, several = served(batch=1), served(gpus=4, pipeline=4, batch=1), served(gpus=4, pipeline=4, batch=4)

    assert staged.decode.time_s.value == pytest.approx(one.decode.time_s.value, rel=0.05)
    assert several.decode.time_s.value == pytest.approx(staged.decode.time_s.value, rel=0.05)
    assert several.prefill.time_s.value == pytest.approx(staged.prefill.time_s.value * 7 / 4, rel=0.05)
    assert (one.fits, staged.fits) == (False, True)


@pytest.mark.parametrize(
    ("name", "plan", "said"),
    [
        ("llama-3-8b", {"gpus": 3, "pipeline": 3}, "divisors of the 32 blocks"),
        ("llama-3-8b", {"gpus": 64, "pipeline": 64}, "divisors of the 32 blocks"),
        ("llama-3-8b", {"gpus": 8, "tensor_parallel": 4, "pipeline": 4}, "divisors of the 2 GPUs or groups"),
        ("resnet-50", {"gpus": 2, "pipeline": 2, "tokens": 0}, "no equal blocks"),
        ("whisper-tiny", {"gpus": 2, "pipeline": 2, "tokens": 100}, "no equal blocks"),
    ],
)
def test_stages_that_cannot_be_are_named(name, plan, said):
    with pytest.raises(InvalidInput, match=said):
        trained(name, **plan)


def test_a_published_training_by_three_kinds_of_parallelism_is_within_its_interval():
    # table 1 of https://arxiv.org/abs/2104.04473: 145.6 billion parameters, 1,536 GPUs, 148 TFLOP/s each
    config = {"n_embd": 12288, "n_layer": 80, "n_head": 96, "vocab_size": 51200, "n_positions": 2048}
    model = model_of_text(layers_of({"model_type": "gpt2", **config}, "config.json"))
    plan = ModelPlan("train", 1536, 8, pipeline=8, batch=1, accumulation=96, tokens=2048, checkpoint=True)
    found = predict_model(model, plan, A100)
    rate = mfu_by_definition(found)["whole"] * 4 / 3 * 312e12
    wide = found.train.time_s

    assert wide.value / wide.high <= 148e12 / rate <= wide.value / wide.low
    assert found.fits


def test_bandwidths_are_those_of_nccl_tests():
    found = predicted("llama-3-70b", gpus=8, tensor_parallel=8)
    (row,) = _collectives_of(found)

    assert (row["name"], row["workers"], row["byte_count"]) == ("all-reduce", 8, 4 * 8192 * 2)
    assert row["time_s"] == link_of(H100, 8).all_reduce_s(4 * 8192 * 2, 8, is_served=True)
    assert row["bus_bytes_per_s"] == pytest.approx(row["byte_count"] / row["time_s"] * 14 / 8)
    assert "bus bandwidth" in scaling_words(found)
    assert _collectives_of(predicted("llama-3-8b")) == []


def test_gpus_with_batches_of_their_own_scale_and_groups_share_a_hosts_network():
    found = trained(gpus=16, shard="full", batch=4)
    of_groups = trained(gpus=16, tensor_parallel=8, shard="none", batch=4)
    shared, each = _collectives_of(of_groups)

    assert 0.5 < _scaling_of(found) < 1
    assert _scaling_of(trained()) is None
    assert (shared["workers"], each["workers"], each["link"]) == (8, 2, "network")
    assert each["longest_bus_bytes_per_s"] == pytest.approx(link_of(H100, 16).bus_bytes_per_s / 8)


def test_weights_of_a_whole_model_are_read_from_memory_where_those_of_a_call_fit_the_cache():
    decode = predict_model(
        model_named("whisper-large-v3"), ModelPlan("decode", batch=1), target_named("l4", ())
    ).decode  # 10 MB a layer, and 48 MB of cache

    read = sum(part.weight_bytes * part.count for part, _ in decode.parts)
    assert decode.seconds["products"] > 0.9 * read / 300e9
