"""A model built in torch from its layers computes what the layers say, and its steps are measured in a worker."""

import json
from dataclasses import replace
from math import exp
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gpuexplore.analysis.prediction import UncertainValue
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.core.once import once
from gpuexplore.features.model.analysis import Training, step_time
from gpuexplore.features.model.analysis.answers import measured_words
from gpuexplore.features.model.analysis.layer_kinds import KINDS
from gpuexplore.features.model.analysis.models import model_named, model_of_text, tape_of
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.measure import UNBUILT, activity_of
from gpuexplore.features.model.measure.built import PLAIN, AttentionModule, Builder
from gpuexplore.features.model.measure.steps import is_steady, step_of
from gpuexplore.hardware import device_named, discover
from gpuexplore.operations import operation_named

ATTENTION = {"heads": 4, "kv": 2, "head": 0, "bias": 0, "out_bias": 1, "rotary": 1, "fused": 1, "causal": 1}


WITHOUT_PLACES = "input 3x32x32; patches 64 size=8 extra=0 positions=no; linear 10"


@once
def cpu():
    return device_named("cpu", discover())


@pytest.mark.parametrize(
    "name", ["gpt2", "resnet-50", "llama-3-8b", "vgg-16", "784-512-10", "vit-b-16", WITHOUT_PLACES]
)
def test_a_built_model_has_the_parameters_of_its_layers(name):
    model = model_of_text(name) if ";" in name else model_named(name)

    with torch.device("meta"):
        made = nn.Sequential(*Builder(model).modules())

    assert sum(weight.numel() for weight in made.parameters()) == sum(tape_of(model, Training()).weights)


def test_a_token_with_cached_keys_is_the_last_of_the_whole_sequence():
    torch.manual_seed(0)
    whole = AttentionModule(32, 0, settings=ATTENTION | {"rotary": 0})
    one = AttentionModule(32, 8, settings=ATTENTION | {"rotary": 0})
    one.load_state_dict(whole.state_dict())
    x = torch.randn(2, 8, 32)
    one._cache = [part(x).view(2, 8, -1, 8).transpose(1, 2).contiguous() for part in (whole.key, whole.value)]

    with torch.no_grad():
        torch.testing.assert_close(one(x[:, -1:]), whole(x)[:, -1:])


def test_rotated_queries_and_keys_depend_on_the_distance_alone():
    early, late = (AttentionModule(32, context, settings=ATTENTION) for context in (0, 5))
    x, y = torch.randn(2, 1, 4, 3, 8).unbind()

    products = [each._rotated(x) @ each._rotated(y).transpose(-2, -1) for each in (early, late)]

    torch.testing.assert_close(*products)


@pytest.mark.parametrize("task", ["train", "prefill", "decode"])
def test_astep_of_a_language_model_runs(task):
    model = model_of_text(
        "input tokens=16\nembedding 32 vocabulary=128 positions=32\nsplit\nlayer_norm\n"
        "attention heads=4\nadd\nlayer_norm\ngated 64\nlinear 128 tied=yes"
    )

    step = step_of(model, ModelPlan(task, batch=2, tokens=16, dtype="fp32", execution="eager"), torch.device("cpu"))

    assert torch.isfinite(step()).all()


def test_steps_are_steady_where_they_no_longer_change():
    assert not is_steady([1.0] * 5)
    assert not is_steady([9.0, 3.0, 2.0, 1.0, 1.0, 1.0])
    assert is_steady([9.0, 1.0, 1.01, 1.02, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"task": "serve"}, "train, prefill and decode"),
        ({"task": "train", "dtype": "fp8"}, "fp32, bf16, fp16"),
        ({"task": "train", "gpus": "8"}, "one device"),
    ],
)
def test_what_cannot_be_measured_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        activity_of({"model": "gpt2"} | given, cpu())


def test_a_model_that_is_too_large_is_refused_before_it_starts():
    with pytest.raises(GpuExploreError, match=r"memory|needs"):
        activity_of({"model": "llama-3-70b", "task": "train", "dtype": "fp32"}, cpu())


def test_windows_are_built_as_long_as_they_hold_all_tokens():
    model = model_named("gemma-3-1b")

    with torch.device("meta"):
        made = nn.Sequential(*Builder(model, tokens=64).modules())
        assert sum(weight.numel() for weight in made.parameters()) == 999_885_952
    with pytest.raises(InvalidInput, match="attention to all tokens"):
        activity_of({"model": model.name, "task": "prefill", "tokens": "1024"}, cpu())


@pytest.fixture
def times_on_a_cpu(monkeypatch):
    """Return a function that gives the seconds of a step on this CPU where each call alone takes one, by group."""
    monkeypatch.setattr(step_time, "_times_s", lambda parts, *others: [1.0 for part in parts])

    def times(model, plan):
        return step_time.terms_of(step_time.step_of(model_named(model), plan), plan, cpu())

    return times


def test_an_optimizer_on_a_cpu_takes_as_long_as_its_operations_one_by_one(times_on_a_cpu):
    """Of 20 accesses of AdamW a fused kernel needs 7; GPT-2 showed 3.3 s where 28 bytes a weight would take 1.2 s."""
    eager, fused = (ModelPlan("train", execution=execution) for execution in ("eager", "compiled"))

    assert times_on_a_cpu("784-128-10", eager).seconds["optimizer"] == pytest.approx(20 / 7)
    assert times_on_a_cpu("784-128-10", replace(eager, optimizer="sgd")).seconds["optimizer"] == pytest.approx(1)
    assert times_on_a_cpu("784-128-10", fused).seconds["optimizer"] == pytest.approx(1)


def test_a_step_on_a_cpu_takes_longer_than_its_calls_alone(times_on_a_cpu):
    trained, prompts = (times_on_a_cpu("resnet-50", ModelPlan(task)) for task in ("train", "prefill"))

    convolutions = sum(part_s for part, part_s in prompts.parts if part.operation == "conv2d")
    assert convolutions == pytest.approx(exp(step_time.CPU["convolutions"]) * 20)  # unlike ones
    sizes = {part.shape["n"] for part, _ in trained.parts if part.group == "elementwise"}
    assert sizes == {operation_named("copy").limits["n"]}  # which no cache holds
    fit = step_time.fitted()
    assert step_time.seconds_of(prompts, fit)["host"] == prompts.kernels * step_time.CPU["call_s"] > 1e-3


@pytest.mark.parametrize(
    ("speed", "said"), [(None, ""), (1.0, ""), (0.5, "predicted (2.00 s to 8.00 s) for that: within")]
)
def test_a_slower_cpu_than_its_peaks_were_measured_on_is_allowed_for(speed, said):
    found = {"step_s": 5.0, "ci95": (4.9, 5.1), "samples_s": [5.0] * 6, "threads": 2}
    phase = SimpleNamespace(time_s=UncertainValue(2.0, 1.0, 4.0))

    words = measured_words("GPT-2", found, phase, speed)

    assert "outside the predicted interval" in words
    assert said in words
    assert said or "speed" not in words


@pytest.mark.slow
def test_a_measured_step_stands_beside_its_prediction(capsys):
    assert main(("model", "784-128-10", "--measure", "--batch", "32")) == EXIT_OK
    told = capsys.readouterr().out

    assert "a step measured" in told
    assert "the predicted interval" in told
    assert "matrix products" in told


@pytest.mark.slow
def test_json_has_each_sample(capsys):
    assert main(("model", "784-128-10", "--measure", "--task", "prefill", "--json")) == EXIT_OK
    told = json.loads(capsys.readouterr().out)

    assert len(told["measured"]["samples_s"]) >= 6
    assert 0 < told["measured"]["speed"] <= 1
    assert sum(told["measured"]["shares"].values()) == pytest.approx(1)


@pytest.mark.parametrize("model", ["whisper-tiny", "dit-xl-2", "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b"])
def test_models_that_torch_does_not_build_are_refused_with_those_that_it_does(capsys, model):
    assert main(("model", model, "--measure", "--task", "prefill")) == EXIT_UNUSABLE
    assert (
        f"model '{model}': expected models with attention to all tokens, and no encoder: gpt2"
        in capsys.readouterr().err
    )


def test_layers_that_are_not_refused_are_those_that_torch_builds():
    built = {kind for kind in KINDS if kind in PLAIN or hasattr(Builder, f"_{kind}")}

    assert built == {*KINDS} - {*UNBUILT} - {"input", "split", "shortcut", "add"}


def test_a_module_of_ones_own_is_not_measured(capsys):
    assert main(("model", "--measure", "--module", "own.py")) == EXIT_UNUSABLE
    assert "--measure needs the name of a model" in capsys.readouterr().err
