import pytest

from gpuexplore.core.units import format_gigabytes
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.models import model_named
from gpuexplore.features.model.analysis.training import training_memory
from tests.pages.conftest import compiler, home, page, texts

PEAK, MOMENT, FITS, LARGEST = range(4)


def figures(app):
    return [metric.value for metric in app.metric]


def model_of(app):
    return next(box for box in app.selectbox if box.label == "Model")


def test_the_first_look_is_at_the_training_of_a_language_model_that_the_link_names(page):
    app = page("memory")
    usual = model_named("llama-3.2-1b")

    assert not app.exception
    assert not app.error
    assert "llama-3.2-1b" == model_of(app).value == "llama-3.2-1b"
    assert app.query_params == {"view": "memory", "model": "llama-3.2-1b"}
    assert figures(app)[PEAK] == format_gigabytes(training_memory(usual, usual.batch).total_bytes) == "78.8 GB"
    assert [control.label for control in app.get("button_group")] == ["View", "Purpose"]


@pytest.mark.parametrize("query", [{"batch": "64"}, {"gpu": "t4"}, {"optimizer": "adamw"}, {"mode": "train"}])
def test_an_old_link_without_a_model_still_means_vgg_16(page, query):
    app = page("memory", **query)

    assert not app.error
    assert model_of(app).value == "vgg-16"
    assert app.query_params["model"] in ("vgg-16", ["vgg-16"])
    assert figures(app) == figures(page("memory", **query, model="vgg-16"))


def test_vgg_16_stays_chosen_when_something_else_is_chosen_after_it(page):
    app = page("memory")
    model_of(app).select("vgg-16").run()
    app.text_input(key="memory.batch").set_value("64").run()

    assert model_of(app).value == "vgg-16"


def test_the_peak_its_moment_and_what_fits_come_first(page):
    app = page("memory", model="vgg-16")

    assert not app.exception
    assert figures(app)[PEAK] == format_gigabytes(training_memory("vgg-16", 128).total_bytes) == "10.5 GB"
    assert figures(app)[MOMENT] == "backward"
    assert figures(app)[FITS] == "yes"
    assert app.metric[MOMENT].delta == "relu (layer 23)"


def test_a_link_restores_every_choice_of_training(page):
    query = {"model": "alexnet", "batch": "64", "dtype": "fp32", "optimizer": "AdamW", "mixed": "bf16"}
    app = page("memory", **query, checkpoints="3", accumulate="2", gpu="rtx-3060-12gb", reserve="2")

    setup = Training(optimizer="adamw", mixed="bf16", checkpoints=3, accumulation=2)
    assert figures(app)[PEAK] == format_gigabytes(training_memory("alexnet", 64, setup).total_bytes)
    assert "GeForce RTX 3060 12GB has 12.0 GiB; reserved, as an assumption: 2 GB." in texts(app.markdown)
    assert not app.error


def test_a_link_restores_serving(page):
    app = page("memory", model="llama-3-8b", mode="serve", batch="8", tokens="4096", kv="fp8")

    weights, cache = 2 * 8_030_261_248, 8 * 4096 * 2 * 32 * 8 * 128
    assert figures(app)[PEAK] == format_gigabytes(weights + cache + 8 * 128_256 * 4)
    assert "65.5 kB per token" in texts(app.caption)


def test_a_model_that_reads_no_tokens_is_not_offered_for_serving(page):
    assert [control.label for control in page("memory", model="vgg-16").get("button_group")] == ["View"]
    assert len(page("memory", model="gpt2").get("button_group")) == 2


def test_a_link_that_serves_a_model_without_tokens_says_that_it_is_shown_in_training(page):
    app = page("memory", model="vgg-16", mode="serve")

    assert "reads no tokens" in texts(app.info)
    assert figures(app)[PEAK] == "10.5 GB"


def test_pasted_layers_are_computed_line_by_line(page):
    app = page("memory", model="layers", layers="input 784;linear 784;relu;linear 10", batch="128")

    assert figures(app)[PEAK] == format_gigabytes(training_memory("mlp", 128).total_bytes)
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
    assert not app.metric
    assert [button.label for button in app.button] == ["Reset to default"]


def test_all_choices_can_be_reset(page):
    app = page("memory", batch="0", optimizer="adamw")
    app.button[0].click().run()

    assert figures(app) == figures(page("memory"))
    assert app.query_params == {"view": "memory", "model": "llama-3.2-1b"}


def test_an_unknown_model_is_named_and_the_default_is_shown(page):
    app = page("memory", model="nosuch")

    assert "nosuch" in texts(app.error)
    assert figures(app)[PEAK] == "78.8 GB"


def test_countings_are_shown_as_candidates(page):
    app = page("memory")

    assert "does not say what it counted: these are candidates" in texts(app.markdown)
    table = next(frame.value for frame in app.dataframe if "Counted" in frame.value)
    assert table["VGG-16"].round(1).tolist() == [10.5, 11.1, 11.6, 7.7, 8.8, 12.1, 15.8, 16.6, 14.0]


def test_a_link_may_name_a_capacity_and_another_gpu_can_be_chosen_after_it(page):
    app = page("memory", gpu="12GB")
    box = next(box for box in app.selectbox if box.label == "GPU")

    assert not app.error
    assert "Fits 12 GB of memory" in [metric.label for metric in app.metric]
    box.select("t4").run()
    assert "Fits Tesla T4" in [metric.label for metric in app.metric]


def test_a_gpu_of_unknown_memory_has_no_largest_batch(page):
    app = page("memory", gpu="apple-m4")

    assert figures(app)[FITS:] == ["—", "—"]
    assert "is unknown" in texts(app.markdown)


def test_a_model_and_a_gpu_in_a_link_may_have_the_names_that_people_give_them(page):
    app = page("memory", model="Meta-Llama-3-8B-Instruct", gpu="h100", dtype="bfloat16").run()

    assert not app.error
    chosen = {one.label: one.value for one in app.selectbox}
    assert (chosen["Model"], chosen["GPU"]) == ("llama-3-8b", "h100-sxm5-80gb")
    said = texts(app.caption)
    assert "Meta-Llama-3-8B-Instruct read as Llama 3 8B" in said
    assert "H100 read as H100 SXM5 80GB; also PCIe, NVL" in said
