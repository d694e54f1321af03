import re
from pathlib import Path

import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from gpuexplore.core.units import format_gigabytes
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.answers import headline
from gpuexplore.features.model.analysis.config import layers_of_text
from gpuexplore.features.model.analysis.models import model_named
from gpuexplore.features.model.analysis.own_module import predict_model
from gpuexplore.features.model.analysis.training import training_memory
from gpuexplore.features.model.ui import speed
from gpuexplore.ui.identity import OWNER_COOKIE
from tests.features.trace.analysis.made import DATA
from tests.pages.conftest import OWNER, compiler, home, page, texts
from tests.waiting import DEADLINE_S

ROOT = Path(__file__).resolve().parents[3]


def answer(app):
    """Return the sentence that stands first in the view Memory."""
    return texts(app.markdown[:1])


def peak(app):
    return re.search(r"needs (.+?)[:;] ", answer(app)).group(1)


def model_of(app):
    return next(box for box in app.selectbox if box.label == "Model")


def field_of(app, label):
    return next(field for field in app.get("file_uploader") if field.label == label)


def test_the_first_look_is_at_the_training_of_a_language_model_that_the_link_names(page):
    app = page("memory")
    usual = model_named("llama-3.2-1b")

    assert not app.exception
    assert not app.error
    assert "llama-3.2-1b" == model_of(app).value == "llama-3.2-1b"
    assert app.query_params == {"view": "memory", "model": "llama-3.2-1b"}
    assert peak(app) == format_gigabytes(training_memory(usual, usual.batch).total_bytes) == "78.8 GB"
    assert [control.label for control in app.get("button_group")] == ["View", "Purpose"]


@pytest.mark.parametrize("query", [{"batch": "64"}, {"gpu": "t4"}, {"optimizer": "adamw"}, {"mode": "train"}])
def test_an_old_link_without_a_model_still_means_vgg_16(page, query):
    app = page("memory", **query)

    assert not app.error
    assert model_of(app).value == "vgg-16"
    assert app.query_params["model"] in ("vgg-16", ["vgg-16"])
    assert answer(app) == answer(page("memory", **query, model="vgg-16"))


def test_vgg_16_stays_chosen_when_something_else_is_chosen_after_it(page):
    app = page("memory")
    model_of(app).select("vgg-16").run()
    app.text_input(key="memory.batch").set_value("64").run()

    assert model_of(app).value == "vgg-16"


def test_the_peak_its_moment_and_what_fits_come_first(page):
    app = page("memory", model="vgg-16")

    assert not app.exception
    assert peak(app) == format_gigabytes(training_memory("vgg-16", 128).total_bytes) == "10.5 GB"
    assert "it fits the 82.9 GB that H100 SXM5 80GB has for tensors; the largest batch is" in answer(app)
    assert "peak in backward, relu (layer 23)" in texts(app.markdown).replace("\\", "")
    kinds = [element.type for element in app.main]
    order = [kinds.index(kind) for kind in ("markdown", "selectbox", "vega_lite_chart", "text_input", "expander")]
    assert order == sorted(order)


def test_a_link_restores_every_choice_of_training(page):
    query = {"model": "alexnet", "batch": "64", "dtype": "fp32", "optimizer": "AdamW", "mixed": "bf16"}
    app = page("memory", **query, checkpoints="3", accumulate="2", gpu="rtx-3060-12gb", reserve="2")

    setup = Training(optimizer="adamw", mixed="bf16", checkpoints=3, accumulation=2)
    assert peak(app) == format_gigabytes(training_memory("alexnet", 64, setup).total_bytes)
    assert "GeForce RTX 3060 12GB has 12.0 GiB, 12.9 GB; reserved, as an assumption: 2 GB." in texts(app.markdown)
    assert not app.error


def test_a_link_restores_serving(page):
    app = page("memory", model="llama-3-8b", mode="serve", batch="8", tokens="4096", kv="fp8")

    weights, cache = 2 * 8_030_261_248, 8 * 4096 * 2 * 32 * 8 * 128
    assert peak(app) == format_gigabytes(weights + cache + 8 * 128_256 * 4)
    assert "65.5 kB per token" in texts(app.caption)


def test_a_model_that_reads_no_tokens_is_not_offered_for_serving(page):
    assert [control.label for control in page("memory", model="vgg-16").get("button_group")] == ["View"]
    assert len(page("memory", model="gpt2").get("button_group")) == 2


def test_a_link_that_serves_a_model_without_tokens_says_that_it_is_shown_in_training(page):
    app = page("memory", model="vgg-16", mode="serve")

    assert "generates no tokens" in texts(app.info)
    assert peak(app) == "10.5 GB"


def test_pasted_layers_are_computed_line_by_line(page):
    app = page("memory", model="layers", layers="input 784;linear 784;relu;linear 10", batch="128")

    assert peak(app) == format_gigabytes(training_memory("mlp", 128).total_bytes)
    table = next(frame.value for frame in app.dataframe if "What is kept" in frame.value)
    assert list(table["Parameters"]) == [784 * 784 + 784, 0, 784 * 10 + 10, 0]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"batch": "0"}, "batch '0'"),
        ({"accumulate": "3"}, "multiples of the 3 micro"),
        ({"reserve": "nan"}, "reserve 'nan'"),
        ({"widths": "784-0-10"}, "784-0-10"),
        ({"layers": "garbage"}, "layers, line 1"),
        ({"model": "gpt2", "tokens": "4096"}, "at most 1,024 tokens"),
    ],
)
def test_a_bad_value_is_named_and_nothing_is_computed(page, query, message):
    app = page("memory", **query)

    assert not app.exception
    assert message in texts(app.error).replace("\\", "")
    assert not app.get("vega_lite_chart")
    assert [button.label for button in app.button] == ["Reset to default"]


def test_all_choices_can_be_reset(page):
    app = page("memory", batch="0", optimizer="adamw")
    app.button[0].click().run()

    assert answer(app) == answer(page("memory"))
    assert app.query_params == {"view": "memory", "model": "llama-3.2-1b"}


def test_an_unknown_model_is_named_and_the_default_is_shown(page):
    app = page("memory", model="nosuch")

    assert "nosuch" in texts(app.error)
    assert peak(app) == "78.8 GB"


def test_countings_are_shown_as_candidates(page):
    app = page("memory")

    assert "does not say what it counted: these are candidates" in texts(app.markdown)
    table = next(frame.value for frame in app.dataframe if "Counted" in frame.value)
    assert table["VGG-16"].round(1).tolist() == [10.5, 11.1, 11.6, 7.7, 8.8, 12.1, 15.8, 16.6, 14.0]


def test_a_link_may_name_a_capacity_and_another_gpu_can_be_chosen_after_it(page):
    app = page("memory", gpu="12GB")
    box = next(box for box in app.selectbox if box.label == "GPU")

    assert not app.error
    assert "12 GB of memory has for tensors" in answer(app)
    box.select("t4").run()
    assert "Tesla T4 has for tensors" in answer(app)


def test_a_gpu_of_unknown_memory_has_no_largest_batch(page):
    app = page("memory", gpu="apple-m4")

    assert "the memory of Apple M4" in answer(app)
    assert "largest batch" not in answer(app)
    assert "is unknown" in answer(app)


def test_a_model_and_a_gpu_in_a_link_may_have_the_names_that_people_give_them(page):
    app = page("memory", model="Meta-Llama-3-8B-Instruct", gpu="h100", dtype="bfloat16").run()

    assert not app.error
    chosen = {one.label: one.value for one in app.selectbox}
    assert (chosen["Model"], chosen["GPU"]) == ("llama-3-8b", "h100-sxm5-80gb")
    said = texts(app.caption)
    assert "Meta-Llama-3-8B-Instruct read as Llama 3 8B" in said
    assert "H100 read as H100 SXM5 80GB; also PCIe, NVL" in said


# Speed: the first view.


def test_memory_is_of_the_training_whose_speed_was_shown(page):
    app = page("model", model="gpt2", task="train")
    app.button_group[0].set_value("memory").run()

    found = predict_model("gpt2", task="train", gpu="h100", batch="8")
    assert peak(app) == format_gigabytes(found.memory_bytes)
    assert (app.query_params["optimizer"], app.query_params["mixed"]) in (("adamw", "bf16"), (["adamw"], ["bf16"]))


def test_first_look_at_speed_is_a_sentence_and_a_picture_of_a_model_on_two_gpus(page):
    app = page("model")
    first = predict_model("llama-3-8b", task="serve")

    assert not app.exception
    assert not app.error
    assert texts(app.markdown[:1]) == f"#### {headline(first)}"
    kinds = [element.type for element in app.main]
    order = [kinds.index(kind) for kind in ("markdown", "selectbox", "vega_lite_chart", "select_slider")]
    assert order == sorted(order)
    assert "is 1." in texts(app.markdown)
    assert app.query_params in ({"model": ["llama-3-8b"]}, {"model": "llama-3-8b"})


def test_every_choice_of_speed_is_in_its_link_and_comes_back_from_it(page):
    query = {
        "model": "gpt2",
        "task": "train",
        "gpu": "t4,l4",
        "gpus": "2",
        "dtype": "fp16",
        "batch": "3",
        "tokens": "256",
        "shard": "gradients",
        "checkpoint": "yes",
    }
    app = page("model", **query)

    assert not app.error
    assert {name: query[name] for name in query} == {name: app.query_params[name] for name in query}
    assert "GPT-2 in fp16 on 2 × Tesla T4: " in texts(app.markdown)
    assert texts(app.markdown).count("attention to all tokens") == 1  # MFU, by definition


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"gpus": "0"}, "gpus '0': expected whole numbers from 1"),
        ({"batch": "many"}, "batch 'many': expected whole numbers from 1"),
        ({"dtype": "fp9"}, "dtype 'fp9': expected bf16, fp16"),
        ({"gpus": "4", "tp": "3"}, "tensor parallel '3': expected divisors of the 4 GPUs"),
        ({"gpus": "4", "pipeline": "3"}, "pipeline '3': expected divisors of the 4 GPUs"),
        ({"gpu": "h101"}, "gpu 'h101': expected"),
        ({"answer": "0"}, "answer '0': expected whole numbers from 1"),
    ],
)
def test_bad_value_of_speed_is_named_and_the_picture_of_the_rest_stays(page, query, said):
    app = page("model", **{"model": "gpt2", "gpu": "l4", **query})

    assert not app.exception
    assert said in texts(app.error)
    assert len(app.get("vega_lite_chart")) == 3


def test_stages_of_a_pipeline_are_in_a_link_and_those_that_cannot_be_are_named(page):
    query = {"model": "llama-3-8b", "gpu": "l4", "gpus": "4", "batch": "2", "pipeline": "2"}
    app = page("model", **query)
    plan = {"task": "serve", "gpus": 4, "batch": 2, "pipeline": 2}

    assert texts(app.markdown[:1]) == f"#### {headline(predict_model('llama-3-8b', gpu='l4', **plan))}"
    assert app.query_params["pipeline"] in ("2", ["2"])
    app.text_input(key="model.pipeline").set_value("3").run()
    assert "pipeline '3': expected divisors of the 4 GPUs" in texts(app.error)
    trained = {"task": "train", "gpus": 4, "pipeline": 4, "accumulation": 16, "checkpoint": True}
    link = {"task": "train", "gpus": "4", "pipeline": "4", "accumulate": "16", "checkpoint": "yes"}
    app = page("model", model="llama-3-8b", gpu="h100", **link)
    assert texts(app.markdown[:1]) == f"#### {headline(predict_model('llama-3-8b', **trained))}"


def test_sound_has_a_short_prompt_and_a_step_of_diffusion_is_a_sample(page):
    app = page("model", model="openai/whisper-large-v3", gpu="l4")

    assert not app.error
    assert app.select_slider(key="model.tokens").value == 4
    app = page("model", model="dit-xl-2", gpu="l4", task="prefill")
    assert not app.error
    assert "DiT-XL/2 in bf16 on L4: " in texts(app.markdown)


def test_gpu_without_units_for_a_dtype_is_named_next_to_one_that_has_them(page):
    app = page("model", model="gpt2", gpu="l4,t4", dtype="fp8")

    assert "fp8 on Tesla T4" in texts(app.error)
    assert "GPT-2 in fp8 on L4: " in texts(app.markdown)


def test_model_that_does_not_fit_is_drawn_on_the_fewest_gpus_that_hold_it(page):
    app = page("model", model="llama-3-70b", gpu="a100")

    assert "does not fit: 142 GB a GPU" in texts(app.markdown)
    assert "Drawn on GPUs that hold the model: 2 × A100 SXM4 80GB." in texts(app.caption)


def test_click_on_memory_takes_the_model_along_and_one_back_brings_speed_back(page):
    app = page("model", model="gpt2", gpu="l4,t4", batch="4", dtype="fp16", task="train")
    app.button_group[0].set_value("memory").run()

    assert not app.error
    assert (model_of(app).value, app.text_input(key="memory.batch").value) == ("gpt2", "4")
    assert app.query_params["gpu"] in ("l4", ["l4"])
    app.text_input(key="memory.batch").set_value("2").run()
    app.button_group[0].set_value("speed").run()
    assert not app.error
    assert "GPT-2 in fp16 on L4: " in texts(app.markdown)
    assert app.query_params["gpu"] in ("l4,t4", ["l4,t4"])
    assert app.select_slider(key="model.batch").value == 2


def test_sliders_step_through_powers_of_two_and_the_exact_number_of_a_link_or_a_field(page):
    app = page("model", model="llama-3-8b", gpu="h100", batch="24")
    slider = app.select_slider(key="model.batch")

    assert not app.error
    assert slider.value == 24
    assert slider.options[:6] == ["1", "2", "4", "8", "16", "24"]
    assert "24 users" in texts(app.markdown[:1])
    slider.set_value(32).run()
    assert app.query_params["batch"] in ("32", ["32"])
    assert "32 users" in texts(app.markdown[:1])
    app.text_input(key="model.tokens.exact").set_value("700").run()
    assert app.select_slider(key="model.tokens").value == 700
    assert app.query_params["tokens"] in ("700", ["700"])
    app.text_input(key="model.answer.exact").set_value("few").run()
    assert "answer 'few': expected whole numbers from 1" in texts(app.error)
    assert "32 users" in texts(app.markdown[:1])


def test_model_that_no_number_of_gpus_of_a_host_holds_gets_a_sentence_and_its_memory(page):
    app = page("model", model="llama-3.1-405b", gpu="l4,t4")

    assert not app.exception
    assert "does not fit: 813 GB a GPU" in texts(app.markdown[:1])
    assert len(app.get("vega_lite_chart")) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b'{"model_type": "lla', "is not complete JSON"),
        (b"[" * 100_000, "is not complete JSON"),
        (b'{"model_type": "mamba"}', "model_type of config.json 'mamba': expected a model without a recurrence"),
        pytest.param(b" " * 5_000_000, "5,000,000 bytes", id="long"),
        (b'{"model_type": "gpt2", "n_embd": 1e9, "n_layer": 2, "n_head": 2, "vocab_size": 9}', "n_embd of config.json"),
    ],
)
def test_config_that_cannot_be_used_gets_a_sentence(page, content, said):
    app = page("model", model="gpt2", gpu="l4")
    field_of(app, "config.json").set_value(("config.json", content, "application/json")).run()

    assert not app.exception
    assert said in texts(app.error)
    assert "GPT-2 in bf16 on L4: " in texts(app.markdown)


def test_layers_of_a_config_that_a_process_of_its_own_reads_are_in_the_link(page, monkeypatch):
    read = []
    monkeypatch.setattr(speed, "read_apart", lambda *given: read.append(given) or layers_of_text(*given[1:]))
    config = b'{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 500, "n_positions": 32}'
    app = page("model", gpu="l4")
    field_of(app, "config.json").set_value(("config.json", config, "application/json")).run()

    assert not app.error
    assert read == [("gpuexplore.features.model.analysis.config:layers_of_text", config.decode(), "config.json")]
    assert model_of(app).value == "layers"
    assert "embedding 64 vocabulary=500" in str(app.query_params["layers"])
    model_of(app).select("gpt2").run()
    assert model_of(app).value == "gpt2", "a file is read once"


def test_trace_is_laid_next_to_the_prediction_and_what_is_none_gets_a_sentence(page):
    app = page("model", model="gpt2", gpu="l4")
    field_of(app, "Trace of torch.profiler").set_value(("t.json", DATA.read_bytes(), "application/json")).run()

    assert not app.exception
    assert "This trace is not of this request: its products have" in texts(app.markdown)
    assert "The trace is of a CPU, the prediction of L4." in texts(app.caption)
    field_of(app, "Trace of torch.profiler").set_value(("t.json", b"{}", "application/json")).run()
    assert "a trace is an object with a list traceEvents" in texts(app.error)


def test_old_address_of_memory_leads_to_its_view_with_all_parameters(page, monkeypatch):
    monkeypatch.setattr(ContextProxy, "cookies", {OWNER_COOKIE: OWNER})
    app = AppTest.from_file(str(ROOT / "gpuexplore/ui/main.py"), default_timeout=DEADLINE_S)
    app._page_hash = calc_hash("memory")  # what a browser asks for at /memory
    app.query_params["model"] = "vgg-16"
    app.query_params["batch"] = "64"
    app.run()

    assert not app.exception
    assert app.query_params["view"] in ("memory", ["memory"])
    assert answer(app) == answer(page("memory", model="vgg-16", batch="64"))
