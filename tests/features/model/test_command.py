"""`memory` prints the peak, its moment and what fits, and names what it cannot use."""

import re

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.features.model.analysis.fits import WELL_KNOWN
from gpuexplore.features.model.analysis.models import model_asked, model_named
from tests.cli.conftest import answered, home
from tests.features.trace.analysis.made import DATA, as_bytes, gpu_trace

KEYS = {
    "parameters_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "total_bytes",
    "peak_moment",
    "timeline",
    "fits",
}


def test_json_has_the_peak_the_timeline_and_what_fits(answered):
    code, told = answered("memory", "vgg-16", "--batch", "128", "--optimizer", "adamw", "--json")

    assert code == EXIT_OK
    assert told.keys() >= KEYS
    assert told["parameters_bytes"] + told["gradients_bytes"] + told["optimizer_bytes"] == 16 * 138_357_544
    assert told["total_bytes"] == max(point["total_bytes"] for point in told["timeline"]) == 11_611_451_776
    assert told["peak_moment"] == "backward, relu (layer 23)"
    assert [fit["gpu"] for fit in told["fits"]] == list(WELL_KNOWN)
    assert all(fit["fits"] == (fit["largest_batch"] >= 128) for fit in told["fits"])


def test_json_of_serving_has_the_cache(answered):
    code, told = answered("memory", "llama-3-8b", "--serve", "--batch", "8", "--tokens", "1024", "--json")

    assert code == EXIT_OK
    assert told["kv_cache_bytes"] == 8 * 1024 * 131_072
    assert (told["mode"], told["gradients_bytes"]) == ("serving", 0)


def test_an_unknown_memory_is_null(answered):
    _, told = answered("memory", "mlp", "--gpu", "apple-m4,12GB", "--json")

    assert [(fit["fits"], fit["largest_batch"] is None) for fit in told["fits"]] == [(None, True), (True, False)]


def test_a_terminal_gets_the_peak_the_kinds_and_the_largest_batches(capsys):
    assert main(("memory", "vgg-16", "--gpu", "12GiB")) == EXIT_OK
    told = capsys.readouterr().out

    assert "Peak: 10.5 GB, in: backward, relu (layer 23)" in told
    assert "12 GiB of memory  12.9 GB  yes   130" in told
    assert "less 1.3 GB and 7 % of the memory, 2 % of HBM" in told


def test_an_answer_says_what_it_holds_for_in_units_of_powers_of_ten_that_can_be_read(capsys):
    assert main(("memory", "llama-3-70b", "--gpu", "t4")) == EXIT_OK
    told = capsys.readouterr().out

    assert "Training in fp32 with SGD, sequences of 8,192 tokens (--dtype," in told
    assert [line for line in told.splitlines() if line.startswith("batch ")] == [
        "batch        131 kB   131 kB"  # 8,192 tokens and as many labels of 8 bytes
    ]
    assert "Tesla T4  17.2 GB" in told
    assert "GiB" not in told


def test_layers_of_a_file_are_a_model(tmp_path, answered):
    path = tmp_path / "net.txt"
    path.write_text("input 784\nlinear 784\nrelu\nlinear 10\n", encoding="utf-8")

    _, told = answered("memory", "--layers", str(path), "--batch", "128", "--json")
    _, same = answered("memory", "mlp", "--json")

    assert told["total_bytes"] == same["total_bytes"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("__import__",), "model '__import__': expected a known model"),
        ((), "give exactly one of MODEL, --layers FILE and --module FILE"),
        (("mlp", "--layers", "x"), "give exactly one of MODEL, --layers FILE and --module FILE"),
        (("mlp", "--batch", "0"), "batch '0': expected whole numbers from 1"),
        (("mlp", "--batch", "1e999"), "batch '1e999'"),
        (("mlp", "--batch", "many"), "batch 'many'"),
        (("mlp", "--dtype", "int3"), "dtype 'int3': expected fp32"),
        (("mlp", "--optimizer", "lion"), "optimizer 'lion': expected sgd"),
        (("mlp", "--mixed", "fp8"), "mixed 'fp8': expected none"),
        (("mlp", "--tokens", "8"), "tokens '8'"),
        (("mlp", "--cache-dtype", "fp8"), "cache dtype 'fp8' applies to serving only"),
        (("gpt2", "--serve", "--optimizer", "sgd"), "optimizer 'sgd' applies to training only"),
        (("mlp", "--gpu", "nope"), "gpu 'nope'"),
        (("mlp", "--reserve", "-1"), "reserve '-1': expected numbers of GB"),
        (("--layers", "/dev/zero"), "at most 12,800"),
        (("9000000-9000000-10",), "fewer than 10,000,000,000,000 parameters"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_printed(capsys, words, message):
    assert main(("memory", *words)) == EXIT_UNUSABLE
    told = capsys.readouterr()

    assert message in told.err
    assert not told.out


@pytest.mark.parametrize(
    ("said", "name"),
    [
        *((said, "llama-3-70b") for said in ("llama 3 70b", "Llama-3-70B", "meta-llama/Meta-Llama-3-70B-Instruct")),
        *((said, "llama-3-8b") for said in ("Llama3.1-8B", "llama3:8b", "meta-llama/Llama-3.1-8B", "LLAMA_3_8B")),
        *((said, "mistral-7b") for said in ("mistral 7b", "mistralai/Mistral-7B-v0.1", "Mistral-7B-Instruct-v0.2")),
        *((said, "mistral-7b-v0.3") for said in ("mistralai/Mistral-7B-v0.3", "Mistral-7B-Instruct-v0.3")),
        *((said, "llama-2-7b") for said in ("Llama2 7B", "meta-llama/Llama-2-7b-chat-hf")),
        *((said, "gpt2-xl") for said in ("gpt2 xl", "GPT2XL", "openai-community/gpt2-xl")),
        *((said, "qwen2.5-7b") for said in ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5:7b")),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"),
    ],
)
def test_a_model_has_the_names_that_people_give_it_and_the_reading_is_said(capsys, answered, said, name):
    words = ("memory", *said.split(), "--serve", "--tokens", "1k", "--dtype", "bfloat16", "--gpu", "12GB")
    told = answered(*words, "--json")[1]
    assert (told["model"], told["setup"]["tokens"], told["setup"]["dtype"]) == (name, 1024, "bf16")
    assert told["readings"] == [f"{said} read as {model_named(name).title}"]
    assert main(words) == EXIT_OK
    assert told["readings"][0] in capsys.readouterr().err


@pytest.mark.parametrize(("said", "name"), [("AdamW", "adamw"), ("SGD", "sgd"), ("RMSprop", "rmsprop")])
def test_an_optimizer_may_be_spelled_as_torch_does(answered, said, name):
    assert answered("memory", "mlp", "--optimizer", said, "--json")[1]["setup"]["optimizer"] == name


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("llama 3", "near: llama"),
        ("mixtral 8x22c", "near: mixtral-8x22b"),
        ("llama 3 8b lora", "near: llama-3-8b"),
        ("Mistral-7B-v0.4", "near: mistral-7b-v0.3"),
        ("resnet-50 v1.0", "near: resnet-50"),
        ("gpt", ", gpt2"),
        *((said, "expected a known model") for said in ("/", "instruct")),
    ],
)
def test_a_name_of_several_models_or_none_is_no_model(capsys, said, near):
    assert main(("memory", said)) == EXIT_UNUSABLE
    assert near in capsys.readouterr().err


def test_a_pipeline_is_predicted_with_its_bubble_and_the_bandwidths_of_collectives(answered, capsys):
    words = ("model", "llama-3-8b", "--gpus", "16", "--tensor-parallel", "2", "--pipeline", "4", "--checkpoint")
    _, told = answered(*words, "--task", "train", "--accumulate", "8", "--json")
    (found,) = told["predictions"]

    assert (found["plan"]["pipeline"], found["plan"]["shard"]) == (4, "none")
    assert found["phases"]["train"]["seconds"]["bubble"] > 0
    assert [row["name"] for row in found["collectives"]] == ["all-reduce", "all-reduce"]
    assert 0.3 < found["scaling_efficiency"] < 1
    assert main(("model", "llama-3-8b", "--gpus", "8", "--pipeline", "2")) == EXIT_OK
    assert "over 4 GPUs by NVLink" in capsys.readouterr().out
    assert main(("model", "llama-3-8b", "--pipeline", "5")) == EXIT_UNUSABLE
    assert "pipeline '5': expected divisors of the 32 blocks" in capsys.readouterr().err


def test_a_usual_prompt_leaves_learned_positions_for_its_answer(answered):
    plans = [
        answered("model", name, "--task", "serve", "--json")[1]["predictions"][0]["plan"]
        for name in ("gpt2", "llama-3-8b")
    ]
    assert [(plan["tokens"], plan["answer"]) for plan in plans] == [(512, 256), (1024, 256)]


def test_a_size_of_memory_is_answered_by_what_fits_it_and_its_speed_is_unknown(answered, capsys):
    _, told = answered("model", "llama-3-8b", "--gpu", "12GB,24GiB", "--weights", "fp8", "--json")

    assert (told["predictions"], [row["fits"] for row in told["memory"]]) == ([], [True, True])
    assert [row["fits"] for row in answered("model", "llama-3-8b", "--gpu", "12GB", "--json")[1]["memory"]] == [False]
    assert main(("model", "gpt2", "--gpu", "h100,24GB", "--task", "train", "--batch", "1")) == EXIT_OK
    room, speed = capsys.readouterr().out.splitlines()[:2]
    assert room.startswith("Training GPT-2 in bf16 at batch 1 needs ")
    assert room.endswith(
        "fits 24 GB of memory, 21.0 GB of it usable. Its speed is unknown: a size of memory names no GPU."
    )
    assert speed.startswith("GPT-2 in bf16 on H100")
    assert main(("model", "gpt2", "--gpu", "0GB")) == EXIT_UNUSABLE
    assert "gpu '0GB': expected sizes of memory above 0 and up to 1,000,000 GB" in capsys.readouterr().err
    assert main(("model", "gpt2", "--gpu", "1TB")) == EXIT_OK
    assert "fits 1 TB of memory" in capsys.readouterr().out


def test_a_model_too_large_for_this_cpu_is_said_to_be_by_how_much_and_no_cpus_share_one(capsys):
    assert main(("model", "deepseek-v3", "--gpu", "cpu")) == EXIT_OK
    first, memory = capsys.readouterr().out.splitlines()[:2]

    assert re.search(r"does not fit: [\d,.]+ TB needed, .* of this CPU's memory usable, [\d,.]+ TB too much\.$", first)
    assert "GPU" not in first + memory.partition(" on ")[0]
    assert main(("model", "gpt2", "--gpu", "cpu", "--gpus", "2")) == EXIT_UNUSABLE
    assert "gpus '2': expected 1 on a CPU" in capsys.readouterr().err


def test_bert_is_shared_by_gpus_although_its_logits_have_a_layer_of_their_own_before_them(answered):
    words = ("model", "bert-base", "--gpus", "2", "--task", "prefill", "--json")
    alone, shared = (answered(*words, "--tensor-parallel", each)[1]["predictions"][0] for each in ("1", "2"))

    assert shared["parameters"] == alone["parameters"]
    assert 0.4 * alone["memory_bytes"] < shared["memory_bytes"] < 0.7 * alone["memory_bytes"]


def test_gpus_of_a_server_that_no_share_of_the_heads_fits_have_batches_of_their_own(capsys):
    assert main(("model", "llama-3-8b", "--gpus", "3")) == EXIT_OK
    assert "for each of 3 users" in capsys.readouterr().out
    assert main(("model", "llama-3-8b", "--gpus", "3", "--tensor-parallel", "3")) == EXIT_UNUSABLE
    assert "whose number divides the 32 heads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("kimi-k2",),
            "fp8 and tensor parallelism over 16 (65.5 GB each) or with weights in int4 and tensor parallelism",
        ),
        (("llama-3-70b",), "fits with tensor parallelism over 2 (71.0 GB each) or with weights in fp8 (73.3 GB)."),
        (
            ("llama-3-70b", "--task", "train"),
            "fits with 32 of them with sharded weights and checkpointing (61.9 GB each).",
        ),
    ],
)
def test_a_model_that_does_not_fit_is_said_to_fit_more_gpus_or_fewer_bits(capsys, words, said):
    assert main(("model", *words)) == EXIT_OK
    assert said in capsys.readouterr().out


def test_tokens_of_a_model_of_images_are_refused_and_a_config_of_text_is_trained_by_one_sequence(capsys, tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("input tokens=128\nembedding 64 vocabulary=100\nattention heads=4\nlinear 100")

    assert main(("model", "vit-b-16", "--tokens", "7")) == EXIT_UNUSABLE
    assert "tokens '7': expected none: ViT-B/16 does not read tokens" in capsys.readouterr().err
    assert model_asked(str(path)).batch == 1


def test_trace_is_compared_with_its_own_gpu_and_dtype(tmp_path, answered, capsys):
    path = tmp_path / "t.json"
    path.write_bytes(as_bytes(gpu_trace()))

    code, told = answered("model", "gpt2", "--task", "prefill", "--trace", str(path), "--json")
    assert main(("model", "gpt2", "--task", "prefill", "--trace", str(path))) == EXIT_OK
    said = capsys.readouterr().out

    assert code == EXIT_OK
    assert (told["traced_on"], told["seen_s"]) == ("H100 SXM5 80GB", pytest.approx(410e-6))
    assert told["notes"] == ["Step: the whole trace.", "Predicted, and not in the trace: attention."]
    asked, sentence = said.splitlines()[:2]
    assert asked == "GPT-2 in bf16 on H100 SXM5 80GB, prompts:"
    assert sentence == told["sentence"]
    assert "part                  " in said
    assert "— to —" not in said


def test_trace_of_a_cpu_is_compared_with_this_cpu(answered):
    code, told = answered("model", "gpt2", "--trace", str(DATA), "--json")

    assert code == EXIT_OK
    assert told["sentence"].startswith("This trace is not of this request")
    assert "prediction" not in told["notes"][0]
