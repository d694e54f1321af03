import warnings

import pytest
import torch

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis import evaluate
from gpuexplore.features.tensors.analysis.storage_type import STORED, printed, type_name


@pytest.mark.parametrize("dtype", STORED)
def test_torch_prints_the_same(dtype):
    chain = evaluate("x = 2x3; x.t()[1:]")
    told = dict(printed(chain.result, chain.storage, dtype, "cpu"))
    x = torch.arange(6).view(2, 3).to(getattr(torch, STORED[dtype].array_name)).t()[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # x.storage() is deprecated, as the notebooks are
        said = {call: repr(eval(call, {"x": x})) for call in told}

    assert told == said


@pytest.mark.parametrize("dtype", STORED)
def test_the_cuda_form_is_what_torch_has_a_class_for(dtype):
    """The oracle needs no GPU: torch keeps its legacy types under these names."""
    tensor, storage = type_name("Tensor", dtype, "cuda"), type_name("Storage", dtype, "cuda")

    assert isinstance(getattr(torch.cuda, tensor.removeprefix("torch.cuda.")), type)
    assert isinstance(getattr(torch.cuda, storage.removeprefix("torch.cuda.")), type)


def test_the_notebooks_types_are_those_of_fp32():
    assert type_name("Storage", "fp32", "cuda") == "torch.cuda.FloatStorage"
    assert type_name("Storage", "fp32", "cpu") == "torch.FloatStorage"


def test_tf32_is_stored_by_no_tensor():
    with pytest.raises(InvalidInput, match="tf32"):
        type_name("Tensor", "tf32", "cuda")
    with pytest.raises(InvalidInput, match="tpu"):
        type_name("Tensor", "fp32", "tpu")
