import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.memory.analysis import Training, training_memory
from gpuexplore.features.memory.analysis.models import model_of_text, models

# torch's MemTracker under FakeTensorMode, batch 128, fp32, GB
TRACKED = {
    "alexnet-2012": {"sgd": 1.108, "momentum": 1.352, "adamw": 1.596},
    "alexnet": {"sgd": 0.970, "momentum": 1.215, "adamw": 1.459},
    "vgg-16": {"sgd": 10.505, "momentum": 11.058, "adamw": 11.611},
}
# as their makers publish them
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg-16": 138_357_544,
    "resnet-50": 25_557_032,
    "mlp": 623_290,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-3.2-1b": 1_235_814_400,
    "llama-2-7b": 6_738_415_616,
    "mistral-7b": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,  # 768 words of 4,096 more, in and out
    "qwen2.5-7b": 7_615_616_512,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
}


@pytest.mark.parametrize(("name", "optimizer"), [(name, kind) for name, row in TRACKED.items() for kind in row])
def test_a_peak_is_what_the_tracker_found(name, optimizer):
    found = training_memory(name, 128, Training(optimizer=optimizer))

    assert found.total_bytes / 1e9 == pytest.approx(TRACKED[name][optimizer], abs=6e-4)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_model_has_as_many_parameters_as_its_maker_says(name):
    assert training_memory(name, 1).parameter_count == PARAMETERS[name]


def test_every_model_can_be_trained_at_its_usual_batch():
    for name, model in models().items():
        assert training_memory(name, model.batch).total_bytes > 0


def test_vgg_with_adamw_takes_16_bytes_a_parameter_before_activations():
    found = training_memory("vgg-16", 128, Training(optimizer="adamw"))

    assert found.parameters_bytes + found.gradients_bytes + found.optimizer_bytes == 16 * 138_357_544


def test_a_peak_is_less_than_the_bars_on_top_of_each_other():
    found = training_memory("vgg-16", 128, Training(optimizer="adamw"))

    bars = [found.most(kind) for kind in found.peak.bytes_by_kind]
    assert found.total_bytes < 0.9 * sum(bars)


def test_at_small_batches_the_peak_of_adamw_is_in_the_optimizer_step_where_no_activations_are():
    small, large = (training_memory("alexnet-2012", batch, Training(optimizer="adamw")) for batch in (32, 128))

    assert small.peak_moment == "optimizer step"
    assert small.peak.bytes_by_kind["activations"] == 0
    assert large.peak.phase == "backward"


def test_gradients_exist_from_the_start_when_they_are_accumulated():
    alone, accumulated = (training_memory("mlp", 128, Training(accumulation=steps)) for steps in (1, 4))

    assert alone.timeline[0].bytes_by_kind["gradients"] == 0
    assert accumulated.timeline[0].bytes_by_kind["gradients"] == accumulated.gradients_bytes


def test_accumulation_has_the_activations_of_a_micro_batch():
    whole, quarter = training_memory("vgg-16", 32), training_memory("vgg-16", 128, Training(accumulation=4))

    assert quarter.activations_bytes == whole.activations_bytes


def test_checkpoints_recompute_what_they_did_not_keep():
    kept, recomputed = (training_memory("gpt2", 4, Training(checkpoints=count)) for count in (0, 27))

    assert recomputed.activations_bytes < 0.6 * kept.activations_bytes
    assert {"recomputation"} == {point.phase for point in recomputed.timeline} - {
        point.phase for point in kept.timeline
    }


def test_mixed_precision_keeps_narrow_activations_and_copies_of_weights():
    full, mixed = (training_memory("vgg-16", 128, Training(mixed=dtype)) for dtype in ("none", "bf16"))

    assert mixed.most("weight copies") == 2 * 138_357_544
    assert mixed.parameters_bytes == full.parameters_bytes
    assert mixed.activations_bytes < 0.7 * full.activations_bytes


def test_everything_is_let_go_by_the_optimizer_step():
    for name in ("vgg-16", "resnet-50", "gpt2", "llama-3.2-1b"):
        for setup in (Training(), Training(mixed="bf16", checkpoints=5)):
            last = training_memory(name, 2, setup).timeline[-1]
            left = {kind: last.bytes_by_kind[kind] for kind in ("activations", "weight copies", "temporary")}
            assert left == {"activations": 0, "weight copies": 0, "temporary": 0}, name


def test_the_softmax_of_unfused_attention_is_stored():
    text = "input tokens=1024;embedding 64 vocabulary=100;attention heads=4 fused={};linear 100"
    fused, stored = (training_memory(model_of_text(text.format(word)), 1) for word in ("yes", "no"))

    assert stored.total_bytes - fused.total_bytes > 2 * 4 * 1024**2 * 4, "scores and their softmax"


@pytest.mark.parametrize("batch", [0, -1, 10**10, True, 1.5])
def test_a_batch_that_cannot_be_is_named(batch):
    with pytest.raises(InvalidInput, match=r"batch .* whole numbers from 1"):
        training_memory("mlp", batch)


def test_a_batch_that_the_micro_batches_do_not_divide_is_named():
    with pytest.raises(InvalidInput, match="batch '128': accepted are multiples of the 3"):
        training_memory("mlp", 128, Training(accumulation=3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "int3"}, "dtype 'int3': accepted are fp32"),
        ({"optimizer": "lion"}, "optimizer 'lion': accepted are sgd"),
        ({"mixed": "fp8"}, "mixed 'fp8'"),
        ({"mixed": "bf16", "dtype": "bf16"}, "autocast needs fp32"),
        ({"accumulation": 0}, "accumulation '0'"),
        ({"checkpoints": -1}, "checkpoints '-1'"),
        ({"tokens": 10**12}, "tokens"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings, message):
    with pytest.raises(InvalidInput, match=message):
        Training(**settings)


def test_more_checkpoints_than_layers_are_refused():
    with pytest.raises(InvalidInput, match="checkpoints '9': accepted are whole numbers from 0 to 3"):
        training_memory("mlp", 8, Training(checkpoints=9))


def test_an_unknown_model_is_named_with_those_there_are():
    with pytest.raises(InvalidInput, match=r"model '__import__': accepted are alexnet-2012, .*784-512-10"):
        training_memory("__import__", 8)


def test_more_bytes_than_a_table_counts_are_refused():
    with pytest.raises(InvalidInput, match=r"batch '1000000000': accepted are .* 100 PB at most"):
        training_memory("vgg-16", 10**9, Training(dtype="fp64"))


def test_a_trillion_parameters_are_refused():
    with pytest.raises(InvalidInput, match=r"1000000-1000000-10, line 2: 'linear 1000000': .* parameters"):
        training_memory("1000000-1000000-10", 1)


def test_tokens_of_a_model_that_reads_none_are_refused():
    with pytest.raises(InvalidInput, match="tokens '64': accepted are none"):
        training_memory("vgg-16", 1, Training(tokens=64))


def test_a_sequence_beyond_the_positions_is_refused():
    with pytest.raises(InvalidInput, match=r"gpt2, line 2: .* at most 1,024 tokens"):
        training_memory("gpt2", 1, Training(tokens=2048))
