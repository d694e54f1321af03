"""The memory of a module of one's own: torch's tracker beside arithmetic, and what cannot be tracked."""

import re

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn.functional import cross_entropy

import gpuexplore as gx
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK
from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.features.model.analysis import OPTIMIZERS, Training
from gpuexplore.features.model.analysis.models import model_named
from gpuexplore.features.model.analysis.training import training_memory
from tests.features.model.analysis.torch_models import OPTIMIZERS as IN_TORCH

PARAMETERS = 784 * 512 + 512 + 512 * 10 + 10
SOURCE = """
import torch

def model():
    return torch.nn.Linear(784, 10), torch.empty(128, 784)

def other():
    return torch.nn.Linear(4, 4)

def broken():
    return 1 / 0

def ending():
    raise SystemExit(3)
"""


def network():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


def loss(logits):
    return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_peak_is_that_of_the_arithmetic_for_a_network_it_knows(optimizer):
    found = gx.memory_of(network(), torch.empty(128, 784), loss=loss, optimizer=IN_TORCH[optimizer])
    expected = training_memory(model_named("784-512-10"), 128, Training(optimizer=optimizer))

    assert found.parameter_count == PARAMETERS
    assert found.tracked["parameters"] == found.arithmetic["parameters"] == 4 * PARAMETERS
    assert found.arithmetic["optimizer state"] is None
    assert found.peak_bytes == pytest.approx(expected.total_bytes, rel=0.1)
    assert expected.peak.moment.startswith(found.phase)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state_of_an_optimizer_by_its_name_is_what_is_tracked_but_for_its_scratch(optimizer):
    found, row = gx.memory_of(network(), torch.empty(128, 784), optimizer=optimizer), OPTIMIZERS[optimizer]
    state, tracked = found.arithmetic["optimizer state"], found.tracked.get("optimizer state", 0)

    assert found.optimizer == row.title
    assert state == row.state_count * 4 * PARAMETERS
    assert state <= tracked <= state + 2 * row.scratch_count * 4 * PARAMETERS + 64


def test_module_is_left_as_it_was():
    module = network().eval()
    before = [weight.clone() for weight in module.parameters()]
    gx.memory_of(module, torch.empty(4, 784))

    assert not module.training
    assert all(map(torch.equal, before, module.parameters()))
    assert all(weight.grad is None for weight in module.parameters())


def test_module_may_be_larger_than_any_machine_and_be_nowhere_yet():
    with torch.device("meta"):
        module = nn.Sequential(*[nn.Linear(2**18, 2**18, bias=False) for _ in range(4)])
        found = gx.memory_of(module, torch.empty(8, 2**18), optimizer="adam", gpus=["h100-sxm5-80gb", "9000GB"])

    assert found.tracked["parameters"] == 2**40
    assert found.peak_bytes >= 4 * 2**40
    assert list(found.fits.values()) == [False, True]
    assert "Adam" in repr(found)


def test_weights_that_are_shared_or_frozen_count_once_or_have_no_gradient():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(1000, 64), nn.Linear(64, 1000, bias=False)
            self.head.weight = self.embedding.weight
            self.frozen = nn.Linear(64, 64).requires_grad_(False)

        def forward(self, tokens):
            return self.head(self.frozen(self.embedding(tokens)))

    found = gx.memory_of(Tied(), torch.zeros(2, 16, dtype=torch.long))

    assert found.parameter_count == 64_000 + 64 * 64 + 64
    assert found.arithmetic["gradients"] == 4 * 64_000
    assert found.tracked["parameters"] == found.arithmetic["parameters"] == 4 * (64_000 + 64 * 64 + 64)
    assert "buffers" not in found.tracked


class Adapted(nn.Module):
    """A frozen linear layer with a low-rank adapter that is trained."""

    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width, bias=False).requires_grad_(False)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def adapted():
    return nn.Sequential(*[part for _ in range(3) for part in (Adapted(256, 8), nn.ReLU())]), torch.zeros(64, 256)


class PartlyTrained(nn.Module):
    """A table whose first rows get no gradient, a list of weights of which one is frozen, and a buffer."""

    def __init__(self):
        super().__init__()
        self.table, self.mask = nn.Embedding(2000, 64), torch.ones(2000, 1)
        self.mask[:1500] = 0
        self.table.weight.register_hook(lambda gradient: gradient * self.mask)
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.ones(64, 64), requires_grad=is_it) for is_it in (False, True)]
        )
        self.register_buffer("shift", torch.zeros(64))

    def forward(self, tokens):
        found = self.table(tokens).mean(1)
        for weight in self.weights:
            found = torch.tanh(found @ weight) + self.shift
        return found


def partly_trained():
    return PartlyTrained(), torch.zeros(8, 32, dtype=torch.long)


def frozen_statistics():
    """Return a network whose normalization keeps its statistics, under inputs that get a gradient themselves."""
    made = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 900, 10))
    images = torch.zeros(8, 3, 32, 32)
    made[1].eval().requires_grad_(False)
    made[4].requires_grad_(False)
    return made, images.requires_grad_()


def unless_frozen(put):
    """Return a method of a tensor that puts a hook on it, and on another where it gets no gradient."""
    return lambda tensor, hook: put(tensor if tensor.requires_grad else torch.ones(1, requires_grad=True), hook)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("making", [adapted, partly_trained, frozen_statistics])
def test_peak_of_a_partly_frozen_module_is_that_of_torchs_own_tracker(making, optimizer, monkeypatch):
    """The tracker puts a hook on every weight, which torch refuses of frozen ones: here it leaves them out."""
    found = gx.memory_of(*making(), optimizer=IN_TORCH[optimizer])
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        monkeypatch.setattr(torch.Tensor, name, unless_frozen(getattr(torch.Tensor, name)))
    with FakeTensorMode():
        module, inputs = making()
        stepping = IN_TORCH[optimizer]([weight for weight in module.parameters() if weight.requires_grad])
        tracker = MemTracker()
        tracker.track_external(module, stepping, inputs)
        with tracker:
            for _ in range(2):
                module(inputs).sum().backward()
                stepping.step()
                stepping.zero_grad()
                tracker.reset_mod_stats()
    (peak,) = tracker.get_tracker_snapshot("peak").values()

    assert found.peak_bytes == pytest.approx(peak["Total"], abs=8)  # the loss, which one of them forgets


def test_inputs_may_be_many_and_nested_and_the_optimizer_anybodys():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, pair, scale):
            return {"sums": self.layer(pair["a"] + pair["b"]) * scale}

    pair = {"a": torch.empty(4, 8), "b": torch.empty(4, 8)}
    found = gx.memory_of(Two(), (pair, 2.0), optimizer=lambda weights: torch.optim.SGD(weights, lr=0.1))

    assert found.optimizer == "<lambda>"
    assert found.arithmetic["optimizer state"] is None
    assert found.tracked["parameters"] == 4 * 72


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"module": 3}, r"module .*3.*torch\.nn\.Module"),
        ({"optimizer": "lion"}, "optimizer 'lion'.*sgd, momentum"),
        ({"optimizer": 7}, "optimizer .*7"),
        ({"gpus": "gpu-9000"}, "gpu 'gpu-9000'"),
        ({"gpus": 7}, "gpus .*7.*as text"),
        ({"gpus": b"t4"}, "gpus .*as text"),
        ({"loss": "mse"}, "loss 'mse'"),
        ({"inputs": {"x": 1}}, "inputs 'dict'"),
        ({"inputs": (number for number in [1])}, "inputs 'generator'"),
        ({"module": nn.ReLU()}, "module 'ReLU'.*trainable parameters"),
    ],
)
def test_what_cannot_be_is_named_with_what_is_accepted(change, told):
    given = {"module": network(), "inputs": torch.empty(4, 784)} | change
    with pytest.raises(InvalidInput, match=told):
        gx.memory_of(given.pop("module"), given.pop("inputs"), **given)


@pytest.mark.parametrize("inputs", [torch.empty(4, 3), "text"])
def test_step_that_fails_says_how(inputs):
    with pytest.raises(GpuExploreError, match="a step of Sequential failed: "):
        gx.memory_of(network(), inputs)


def test_output_without_a_gradient_asks_for_a_loss():
    class Deciding(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x).argmax()

    with pytest.raises(GpuExploreError, match="its output, FakeTensor, has no tensor with a gradient"):
        gx.memory_of(Deciding(), torch.empty(4, 4))


def test_loss_that_reaches_for_the_module_itself_leaves_no_gradient_there():
    module = nn.Linear(8, 8)
    gx.memory_of(module, torch.empty(2, 8), loss=lambda out: out.sum() + module.weight.pow(2).sum())
    assert module.weight.grad is None

    module(torch.ones(2, 8)).sum().backward()
    kept = module.weight.grad
    gx.memory_of(module, torch.empty(2, 8), loss=lambda out: out.sum() + module.weight.pow(2).sum())
    assert module.weight.grad is kept


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")  # torch's own
def test_no_gradients_outside_and_a_compiled_module_make_no_difference():
    module = network()
    expected = gx.memory_of(module, torch.empty(4, 784))
    with torch.no_grad():
        assert gx.memory_of(module, torch.empty(4, 784)).tracked == expected.tracked
    assert gx.memory_of(torch.compile(module), torch.empty(4, 784)).tracked == expected.tracked


def test_function_that_is_named_like_an_optimizer_is_not_taken_for_it():
    def adam(weights):
        return torch.optim.SGD(weights, lr=0.1)

    found = gx.memory_of(network(), torch.empty(4, 784), optimizer=adam)

    assert (found.optimizer, found.arithmetic["optimizer state"]) == ("adam", None)


def test_branch_on_a_value_cannot_be_tracked():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) if x.sum().item() > 0 else x

    with pytest.raises(GpuExploreError, match="DataDependentOutput"):
        gx.memory_of(Branching(), torch.empty(4, 4))


def test_command_tracks_a_module_of_a_file(mine, capsys):
    assert main(["memory", "--module", mine, "--optimizer", "adam", "--gpu", "t4"]) == EXIT_OK

    said = capsys.readouterr().out
    assert "Linear: 7,850 parameters, Adam" in said
    assert "Tesla T4: fits" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--module", "nowhere.py"], "module 'nowhere.py'"),
        (["--module", "MINE:other"], "what other of .*mine.py:other returns 'Linear'"),
        (["--module", "MINE:broken"], "its function broken failed: ZeroDivisionError"),
        (["--module", "MINE:missing"], "the file has no function missing"),
        (["--module", "MINE:ending"], "its function ending failed: it called exit with 3"),
        (["--module", "MINE", "--batch", "4"], "--batch '4' cannot be combined with --module"),
        (["--module", "MINE", "--cache-dtype", "fp8"], "--cache-dtype 'fp8' cannot be combined with --module"),
        (["--module", "MINE", "--serve"], "--serve cannot be combined with --module"),
        (["resnet-50", "--module", "MINE"], "MODEL 'resnet-50' cannot be combined with --module"),
    ],
)
def test_command_names_what_is_wrong_with_a_file(mine, capsys, words, told):
    assert main(["memory", *(word.replace("MINE", mine) for word in words)]) != EXIT_OK

    error = capsys.readouterr().err
    assert re.search(told, error), error
