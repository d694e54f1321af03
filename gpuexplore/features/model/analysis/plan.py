"""The way a model is run: trained or served, on how many GPUs, in which dtypes; and the same as typed."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal

from gpuexplore.core.dtypes import spelled
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import in_any_case
from gpuexplore.core.units import read_length, read_number
from gpuexplore.features.model.analysis import OPTIMIZERS, SERVED

Task = Literal["train", "prefill", "decode", "serve"]
Sharding = Literal["none", "gradients", "full"]
Execution = Literal["eager", "compiled", "graph"]

TASKS: Mapping[Task, str] = MappingProxyType(
    {
        "train": "training steps",
        "prefill": "the prompts of a batch, up to the first token of each answer",
        "decode": "one token more for each sequence of a batch",
        "serve": "prompts and answers of a batch",
    }
)
SHARDINGS: Mapping[Sharding, str] = MappingProxyType(
    {
        "none": "each GPU has all weights: DistributedDataParallel",
        "gradients": "gradients and optimizer state are shared: ZeRO-2, FSDP's SHARD_GRAD_OP",
        "full": "weights are shared as well: ZeRO-3, FSDP's FULL_SHARD",
    }
)
EXECUTIONS: Mapping[Execution, str] = MappingProxyType(
    {
        "eager": "operation by operation from Python",
        "compiled": "torch.compile: element-wise operations are fused",
        "graph": "a CUDA graph with fused kernels, as servers of language models replay it",
    }
)
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8")
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "gpus": (1, 100_000),
        "tensor_parallel": (1, 64),
        "batch": (1, 1_000_000),
        "tokens": (1, 10**7),
        "answer": (1, 10**6),
        "accumulation": (1, 10_000),
    }
)
HOST_GPUS = 8  # that are connected by their own links, as in DGX and HGX machines


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to run a model.

    Attributes:
        gpus: all of them.
        tensor_parallel: GPUs that share each layer; the others have batches of their own.
        shard: what data-parallel GPUs share in training.
        batch: sequences or samples that a group of `tensor_parallel` GPUs has at once.
        tokens: of a training sequence, or of a prompt; 0 for the model's own.
        answer: tokens that are generated for a prompt.
        dtype: of the products.
        weights: dtype of the weights of a server, keys of SERVED; empty is `dtype`.
        cache: dtype of its keys and values; empty is `dtype`, or bf16 with fp8 products.
        checkpoint: whether activations are recomputed in the backward pass, block by block.
        accumulation: micro-batches a step, each with `batch` sequences.
        network_gbs: GB/s of a host to others, one direction; None: as is usual for its generation.
        fused_attention: attention in one kernel that does not store its scores.
        longest: tokens of the longest prompt of a batch, over `tokens`, the mean.
    """

    task: Task = "decode"
    gpus: int = 1
    tensor_parallel: int = 1
    shard: Sharding = "none"
    batch: int = 1
    tokens: int = 0
    answer: int = 256
    dtype: str = "bf16"
    weights: str = ""
    cache: str = ""
    checkpoint: bool = False
    accumulation: int = 1
    optimizer: str = "adamw"
    execution: Execution = "graph"
    network_gbs: float | None = None
    fused_attention: bool = True
    longest: float = 1.0

    def __post_init__(self) -> None:
        """Refuse values that cannot be.

        Raises:
            InvalidInput: names the value and what is accepted.
        """
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value > most:
                raise InvalidInput.of(name.replace("_", " "), value, f"whole numbers from {least} to {most:,}")
            if value < (0 if name == "tokens" else least):
                raise InvalidInput.of(name.replace("_", " "), value, f"whole numbers from {least} to {most:,}")
        for what, value, accepted in (
            ("task", self.task, TASKS),
            ("shard", self.shard, SHARDINGS),
            ("execution", self.execution, EXECUTIONS),
            ("dtype", self.dtype, DTYPES),
            ("weights", self.weights or "bf16", SERVED),
            ("cache dtype", self.cache or "bf16", SERVED),
            ("optimizer", self.optimizer, OPTIMIZERS),
        ):
            if value not in accepted:
                raise InvalidInput.of(what, value, accepted)
        if self.gpus % self.tensor_parallel:
            raise InvalidInput.of("tensor parallel", self.tensor_parallel, f"divisors of the {self.gpus} GPUs")
        if self.network_gbs is not None and not 0 < self.network_gbs <= 10_000:
            raise InvalidInput.of("network", self.network_gbs, "GB/s from above 0 to 10,000")

    @property
    def is_trained(self) -> bool:
        """Whether it is a training step."""
        return self.task == "train"

    @property
    def replicas(self) -> int:
        """Groups of GPUs that have a batch each."""
        return self.gpus // self.tensor_parallel

    @property
    def weight_dtype(self) -> str:
        """Dtype that the weights of a server are stored in."""
        return self.weights or {"tf32": "fp32"}.get(self.dtype, self.dtype)

    @property
    def cache_dtype(self) -> str:
        """Dtype of a server's keys and values."""
        return self.cache or {"tf32": "fp32", "fp8": "bf16"}.get(self.dtype, self.dtype)


def plan_of(typed: Mapping[str, str]) -> Plan:
    """Return the plan that was typed: fields of Plan as text, empty or missing ones by default.

    Raises:
        InvalidInput: names the value and what is accepted.
    """
    given = {name: text.strip() for name, text in typed.items() if text and text.strip()}
    known = {each.name for each in fields(Plan)}
    found: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            raise InvalidInput.of("setting", name, known)
        if name in LIMITS:
            number = read_length(text)
            least, most = LIMITS[name]
            if number is None or not least <= number <= most:
                raise InvalidInput.of(name.replace("_", " "), text, f"whole numbers from {least} to {most:,}")
            found[name] = number
        elif name == "network_gbs":
            found[name] = read_number(text)
            if found[name] is None:
                raise InvalidInput.of("network", text, "GB/s of a host to others, like 400")
        elif name in ("checkpoint", "fused_attention"):
            found[name] = text.casefold() in ("yes", "true", "1", "on")
        else:
            accepted = {"task": TASKS, "shard": SHARDINGS, "execution": EXECUTIONS, "optimizer": OPTIMIZERS}.get(name)
            found[name] = in_any_case(text, accepted) if accepted else spelled(text)
    if found.get("task") == "train":
        found.setdefault("execution", "eager")
        if found.get("gpus", 1) > found.get("tensor_parallel", 1):
            found.setdefault("shard", "full")
        for name in ("weights", "cache", "answer"):
            if name in found:
                raise InvalidInput(f"{name} {found[name]!r} applies to serving only: leave it out")
    else:
        for name in ("shard", "accumulation", "optimizer", "checkpoint"):
            if name in found and (name != "checkpoint" or found[name]):
                raise InvalidInput(f"{name} {given[name][:60]!r} applies to training only: leave it out")
    if "gpus" not in found and "tensor_parallel" in found:
        found["gpus"] = found["tensor_parallel"]
    return Plan(**found)
