import pytest

from gpuexplore.charts import peaks
from tests.analysis.made import device


def rows(chart):
    (data,) = chart.to_dict()["datasets"].values()
    return [(one["row"], one["peak"]) for one in data]


def test_each_dtype_with_a_peak_for_products_has_a_bar():
    assert rows(peaks([device()])) == [("fp32", "1.00 TFLOP/s"), ("bf16", "4.00 TFLOP/s")]


def test_several_devices_are_told_apart():
    assert [row for row, _ in rows(peaks([device(), device(device_id="cuda:0")]))][::2] == ["cpu, fp32", "cuda:0, fp32"]


@pytest.mark.parametrize(
    ("known", "said"), [({}, "fp32 1.00 TFLOP/s, bf16 4.00 TFLOP/s"), ({"peaks": ()}, "none is known")]
)
def test_the_alternative_text_names_every_peak(known, said):
    assert peaks([device(**known)]).to_dict()["description"] == f"Peaks by dtype: {said}"
