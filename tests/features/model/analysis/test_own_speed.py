"""The operations of a user's module: their FLOPs are torch's own, none is dropped, and nothing is allocated."""

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import gpuexplore as gx
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import GpuExploreError, InvalidInput


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(32, 64, 2, batch_first=True)

    def forward(self, x):
        return self.layers(x)[0]


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Other(nn.Linear):
    def forward(self, x):
        return torch.linalg.qr(super().forward(x))[0]


class Deciding(nn.Linear):
    def forward(self, x):
        return super().forward(x) if x.sum().item() > 0 else x


def convolutions(groups):
    return nn.Sequential(
        nn.Conv2d(8, 32, 3, stride=2, padding=1, groups=groups),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 16, (1, 3), padding=1),
        nn.ConvTranspose2d(16, 8, 2, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
    )


def perceptron():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))


MODULES = {
    "mlp": (perceptron, (16, 64)),
    "conv": (lambda: convolutions(1), (4, 8, 33, 33)),
    "encoder": (lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), (2, 24, 64)),
    "attention": (Attending, (2, 24, 64)),
    "lstm": (Recurrent, (3, 7, 32)),
}


def counted(module, data, *, is_trained):
    """Return the FLOPs that torch's own counter finds, attention as two products."""
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    was_enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        with (
            FlopCounterMode(display=False) as counter,
            sdpa_kernel(SDPBackend.MATH),
            torch.set_grad_enabled(is_trained),
        ):
            found = module.train(is_trained)(data)
            if is_trained:
                found.sum().backward()
    finally:
        torch.backends.mkldnn.set_flags(_enabled=was_enabled)
        torch.backends.mha.set_fastpath_enabled(was_fast)
    return counter.get_total_flops()


@pytest.mark.parametrize("task", ["train", "prefill"])
@pytest.mark.parametrize("name", MODULES)
def test_flops_are_those_of_torchs_counter_and_every_operation_is_known(name, task):
    making, shape = MODULES[name]

    found = gx.predict_model(making(), torch.randn(shape), task=task, dtype="fp32")

    expected = counted(making(), torch.randn(shape), is_trained=task == "train")
    assert found.whole_flop_count == pytest.approx(expected, rel=1e-3)
    assert not found.uncounted
    assert found.main.time_s.value > 0


def test_groups_of_a_convolution_divide_its_products_also_in_the_backward_pass():
    """Torch's counter takes the gradient of grouped weights for that of dense ones: the forward pass compares."""
    data = torch.randn(4, 8, 33, 33)
    module = nn.Sequential(nn.Conv2d(8, 32, 3, groups=4), nn.Flatten())

    forward = gx.predict_model(module, data, task="prefill", dtype="fp32").flop_count

    assert forward == counted(module, data, is_trained=False) == 2 * 4 * 31 * 31 * 32 * 2 * 9
    # the gradient of the weights; that of the data is not needed
    assert gx.predict_model(module, data, task="train", dtype="fp32").flop_count == 2 * forward


def test_causal_attention_counts_the_pairs_that_its_mask_leaves():
    class Causal(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x, None, 0.0, True)

    found = gx.predict_model(Causal(), torch.randn(2, 4, 64, 32), task="prefill", dtype="bf16")

    assert found.whole_flop_count == 4 * 2 * 4 * 64 * 64 * 32
    assert found.flop_count == found.whole_flop_count * 65 / 128


def test_an_operation_that_is_not_known_is_named():
    found = gx.predict_model(Other(4, 4), torch.randn(4, 4), task="prefill", dtype="fp32")

    assert found.uncounted == {"aten.linalg_qr": 1}


@pytest.mark.parametrize("dtype", ["fp32", "tf32", "bf16", "fp16", "fp8"])
def test_a_module_is_predicted_as_if_cast_to_the_dtype(dtype):
    found = gx.predict_model(perceptron(), torch.randn(4096, 64), gpu="h100", task="train", dtype=dtype)

    dtypes = {part.dtype for part, _ in found.main.parts if part.group == "products"}
    assert dtypes == {dtype}


def test_a_module_on_the_meta_device_has_a_batch_tokens_and_memory():
    with torch.device("meta"):
        module = nn.Sequential(nn.Embedding(32_000, 8192), *[nn.Linear(8192, 8192) for _ in range(20)])
        tokens = torch.zeros(2, 1024, dtype=torch.long)

    found = gx.predict_model(module, tokens, task="prefill", dtype="bf16")

    assert (found.plan.batch, found.plan.tokens, found.tokens_a_step) == (2, 1024, 2048)
    assert 1 < found.memory_bytes / (2 * sum(weight.numel() for weight in module.parameters())) < 1.1


def test_training_has_more_memory_than_a_pass_and_an_optimizer():
    module, data = perceptron(), torch.randn(16, 64)

    train, prefill = (gx.predict_model(module, data, task=task, dtype="fp32") for task in ("train", "prefill"))

    assert train.memory_bytes == gx.memory_of(module, data, optimizer="adamw").peak_bytes > prefill.memory_bytes
    assert train.main.seconds["optimizer"] > 0
    assert all(weight.grad is None for weight in module.parameters())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"task": "decode"}, "train and prefill"),
        ({"task": "train", "gpus": 8}, "one GPU"),
        ({"task": "train", "inputs": {"x": 1}}, "inputs"),
    ],
)
def test_what_a_module_cannot_be_asked_is_refused(given, words):
    given = {"inputs": torch.randn(2, 64)} | given

    with pytest.raises(InvalidInput, match=words):
        gx.predict_model(perceptron(), **given)


def test_a_module_that_fails_says_how():
    with pytest.raises(GpuExploreError, match="Deciding failed on its inputs: DataDependent"):
        gx.predict_model(Deciding(4, 4), torch.randn(4, 4), task="prefill", dtype="fp32")


FILE = """
import torch

def model():
    return torch.nn.Linear(512, 512), torch.zeros(64, 512)

def wrong():
    return torch.nn.Linear(512, 512)
"""


def test_a_file_gives_the_module_and_its_inputs(tmp_path, capsys):
    (tmp_path / "own.py").write_text(FILE)

    assert main(("model", "--module", str(tmp_path / "own.py"), "--gpu", "h100,a100")) == EXIT_OK
    told = capsys.readouterr().out

    assert "Linear in bf16 on H100" in told
    assert "linear 512 → 512" in told
    assert "modules of one's own" in told


def test_a_file_that_gives_something_else_is_refused(tmp_path, capsys):
    (tmp_path / "own.py").write_text(FILE)

    assert main(("model", "--module", f"{tmp_path / 'own.py'}:wrong")) == EXIT_UNUSABLE
    assert main(("model", "--module", f"{tmp_path / 'none.py'}")) == EXIT_UNUSABLE
    assert main(("model", "gpt2", "--module", "own.py")) == EXIT_UNUSABLE
    told = capsys.readouterr().err

    assert "a module and its inputs" in told
    assert "an existing file" in told
    assert "one of them" in told
