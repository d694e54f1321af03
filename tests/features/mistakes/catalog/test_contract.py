"""Every mistake is listed, told in full, and cheap to read."""

import re
from dataclasses import replace
from importlib import import_module
from typing import get_args

import pytest

from gpuexplore.analysis.model import DiagnosisKind
from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.core.model import FlagName, Status
from gpuexplore.features.mistakes.catalog import FORMATS, MISTAKES, UNITS, Factor, Quantity, WayReading, mistake_named
from tests.architecture.imports import libraries_loaded_by
from tests.features.mistakes.catalog.made import stage
from tests.measure.fakes import GPU

NAMED = {
    "flag": get_args(FlagName),
    "diagnosis": get_args(DiagnosisKind),
    "status": [status.value for status in Status],
}
EACH = pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))


@pytest.mark.parametrize("file", sorted({mistake.file for mistake in MISTAKES.values()}))
def test_each_file_makes_the_mistakes_that_are_listed_for_it(file):
    listed = [mistake for mistake in MISTAKES.values() if mistake.file == file]
    module = import_module(f"gpuexplore.features.mistakes.catalog.{file}")

    assert listed
    assert set(module.DEMONSTRATIONS) == {
        name for mistake in listed for name in (mistake.name, mistake.instead) if name is not None
    }


@EACH
def test_a_mistake_is_told_in_full_with_its_sign_and_where_it_cannot_be_made(mistake):
    sign = mistake.gives_away

    assert mistake.title.endswith("?")
    assert all(sentence.endswith(".") for sentence in (mistake.wrong, mistake.right, mistake.why))
    assert len(re.findall(r"\.(?: |$)", mistake.why)) == 2
    assert mistake.rows
    assert all(re.fullmatch("[A-E][1-7]", row) for row in mistake.rows)
    assert mistake.wrong_code != mistake.right_code
    assert max(map(len, f"{mistake.wrong_code}\n{mistake.right_code}".splitlines())) <= 44, "half a page"
    assert (sign is None) == bool(mistake.why_none)
    assert sign is None or sign.kind == "check" or sign.name in NAMED[sign.kind]
    assert set(mistake.live_on) <= {"cpu", "cuda"}
    assert len(mistake.live_on) != 1 or mistake.elsewhere


@pytest.mark.parametrize("quantity", get_args(Quantity))
def test_every_quantity_has_a_unit_and_words(quantity):
    assert UNITS[quantity]
    assert FORMATS[quantity](0.5)


def test_a_mistake_that_cannot_be_made_on_a_device_says_why():
    device = replace(GPU, id="rocm:0", kind="rocm")

    for mistake in MISTAKES.values():
        with pytest.raises(Unsupported, match=f"the mistake {mistake.name} needs a CPU or an NVIDIA GPU, but rocm:0"):
            mistake.observe(stage(device=device))
    with pytest.raises(Unsupported, match="fp16-overflow is not measured on cuda devices: the range of the format"):
        MISTAKES["fp16-overflow"].observe(stage(device=GPU))
    assert sum("cpu" in mistake.live_on for mistake in MISTAKES.values()) >= 17


def test_a_mistake_without_sign_and_reason_and_an_unknown_name_are_refused():
    with pytest.raises(InvalidInput, match="expected either what detects it, or why nothing can"):
        replace(MISTAKES["flops-n3"], why_none=None)

    with pytest.raises(InvalidInput, match=r"'no-clock': expected no-synchronise, first-call"):
        mistake_named("no-clock")


@pytest.mark.parametrize(
    ("ci95", "expected"), [(None, False), ((0.9, 1.1), True), ((1.1, 1.2), False), ((0.8, 0.9), False)]
)
def test_a_factor_is_within_noise_when_its_interval_holds_1(ci95, expected):
    assert Factor(1.0, ci95).is_within_noise == expected


@pytest.mark.parametrize(
    ("reading", "words"),
    [(WayReading(2e-3), "2.00 ms"), (WayReading(None, text="inf"), "inf"), (WayReading(None), "—")],
)
def test_a_reading_is_told_in_words(reading, words, made_observation):
    assert made_observation.words(reading) == words


@pytest.mark.long
def test_reading_about_mistakes_loads_no_measuring_library_and_no_office_library():
    loaded = libraries_loaded_by("import gpuexplore.features.mistakes.catalog")

    assert "numpy" in loaded
    assert not loaded & {"altair", "cuda", "cupy", "llvmlite", "numba", "pandas", "sqlalchemy", "streamlit", "torch"}
