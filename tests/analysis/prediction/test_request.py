import pytest

from gpuexplore.analysis.prediction import CALLS
from gpuexplore.analysis.prediction.request import PredictionRequest, calls_named, predictions
from gpuexplore.core.errors import InvalidInput

T4 = {"gpus": "t4", "sizes": "64", "dtypes": "fp32"}


def test_calls_are_queued_unless_other_kinds_are_asked_for_by_any_name():
    assert [found.calls for found in predictions(PredictionRequest("matmul", **T4), ())] == ["queued"]
    assert [found.calls for found in predictions(PredictionRequest("matmul", **T4, calls=" graph "), ())] == ["graph"]

    found = predictions(PredictionRequest("matmul", **T4, calls="GRAPH,queued"), ())
    assert [each.calls for each in found] == ["graph", "queued"]

    assert [calls_named(name) for name in CALLS] == list(CALLS)


@pytest.mark.parametrize("text", ["", "grapħ", "0"])
def test_unknown_kind_of_calls_is_named_with_those_that_there_are(text):
    with pytest.raises(InvalidInput, match=f"calls '{text}': expected graph, queued, single"):
        predictions(PredictionRequest("matmul", **T4, calls=text), ())
