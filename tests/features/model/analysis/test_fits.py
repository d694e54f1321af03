import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Serving, Training
from gpuexplore.features.model.analysis.fits import (
    DEFAULT_RESERVE,
    WELL_KNOWN,
    Gpu,
    Reserve,
    _deciding,
    all_gpus,
    fits_of,
    gpus_named,
)
from gpuexplore.features.model.analysis.models import model_named, models
from gpuexplore.features.model.analysis.training import serving_memory, step_moments, training_memory

SETUPS = (
    Training(),
    Training(optimizer="adamw", mixed="bf16"),
    Training(checkpoints=3, accumulation=4),
    Training(dtype="bf16", optimizer="adagrad"),
)


NOTHING = Reserve(0, 0.0, 0.0)


def largest_batch(name, capacity_bytes, setup, *, reserve=NOTHING):
    (fit,) = fits_of(model_named(name), 1, setup, [Gpu("", "", capacity_bytes)], reserve=reserve)
    return fit.largest_batch


@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize("name", ["alexnet-2012", "vgg-16", "resnet-50", "mlp", "gpt2"])
def test_the_largest_batch_fits_and_the_next_one_does_not(name, setup):
    capacity = 12 * 10**9

    largest = largest_batch(name, capacity, setup)

    assert training_memory(name, largest, setup).total_bytes <= capacity
    assert training_memory(name, largest + setup.accumulation, setup).total_bytes > capacity


def test_the_largest_batch_to_serve_fits_and_the_next_one_does_not():
    setup, capacity = Serving(tokens=4096), 80 * 10**9

    largest = largest_batch("llama-3-8b", capacity, setup)

    assert serving_memory("llama-3-8b", largest, setup).total_bytes <= capacity
    assert serving_memory("llama-3-8b", largest + 1, setup).total_bytes > capacity


def test_nothing_fits_where_the_parameters_do_not():
    assert largest_batch("llama-3-70b", 80 * 10**9, Training(optimizer="adamw")) == 0


def test_the_reserve_is_taken_off_first():
    there = 12 * 2**30

    assert largest_batch("vgg-16", there, Training()) == 160
    assert largest_batch("vgg-16", there, Training(), reserve=DEFAULT_RESERVE) == 130
    assert DEFAULT_RESERVE.usable_bytes(there) == int(0.93 * there) - 1_300_000_000
    assert DEFAULT_RESERVE.usable_bytes(there, "HBM2e") == int(0.98 * there) - 1_300_000_000
    assert Reserve(10**10, 0.5).usable_bytes(10**10) == 0


def test_a_gpu_whose_memory_is_unknown_has_no_answer():
    known, unknown = fits_of(model_named("mlp"), 128, Training(), gpus_named(["t4", "apple-m4"]))

    assert (known.fits, known.largest_batch > 128) == (True, True)
    assert (unknown.fits, unknown.largest_batch) == (None, None)


def test_a_batch_fits_up_to_the_largest():
    model, gpus = model_named("vgg-16"), gpus_named(["12GiB"])
    (fit,) = fits_of(model, 130, Training(), gpus)

    assert (fit.largest_batch, fit.fits) == (130, True)
    assert fits_of(model, 131, Training(), gpus)[0].fits is False


def test_a_memory_can_be_given_as_a_size():
    assert [gpu.memory_bytes for gpu in gpus_named(["12GB", "24GiB", "1.5 gb"])] == [12 * 10**9, 24 * 2**30, 15 * 10**8]


@pytest.mark.parametrize(
    ("names", "accepted"),
    [
        *((names, "names and keys") for names in ([], ["nope"], [""], ["GB"])),
        *(
            ([size], "sizes of memory above 0 and up to 1,000,000 GB$")
            for size in ("0GB", "0.0 GiB", "1e400GB", "1e30GB", "1.1.1GB")
        ),
    ],
)
def test_what_is_no_gpu_is_refused_with_what_is_accepted(names, accepted):
    with pytest.raises(InvalidInput, match=f"gpu '.*': expected {accepted}"):
        gpus_named(names)


def test_every_well_known_gpu_is_in_the_table_with_its_memory():
    assert all(gpu.memory_bytes for gpu in gpus_named(WELL_KNOWN))
    assert gpus_named(["all"]) == all_gpus()


def test_larger_memory_never_has_a_smaller_batch():
    fits = fits_of(
        models()["resnet-50"], 1, Training(), sorted(gpus_named(WELL_KNOWN), key=lambda gpu: gpu.memory_bytes)
    )

    batches = [fit.largest_batch for fit in fits]
    assert batches == sorted(batches)


@pytest.mark.parametrize("reserve", [(-1, 0.0), (0, 1.0), (0, float("nan")), (0, 0.0, 1.0), (10**16, 0.0)])
def test_a_reserve_that_cannot_be_is_named(reserve):
    with pytest.raises(InvalidInput, match="reserve"):
        Reserve(*reserve)


@pytest.mark.parametrize("name", ["alexnet", "resnet-50", "transformer"])
def test_few_moments_decide_and_allow_what_all_of_them_do(name):
    moments = step_moments(model_named(name), Training())
    deciding = _deciding(moments)

    assert len(deciding) <= 10 < len(moments) / 4
    for capacity in (10**8, 10**9, 3 * 10**9, 10**11):
        limits = [[each.largest_batch(capacity) for each in sizes] for sizes in (deciding, [m.total for m in moments])]
        few, every = (min(limit for limit in found if limit is not None) for found in limits)
        assert few == every
