"""The way a model is run: trained or served, on how many GPUs, in which dtypes; and the same as typed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from gpuexplore.core import InvalidInput, in_any_case, read_number, require
from gpuexplore.core.dtypes import spelled
from gpuexplore.features.model.analysis import OPTIMIZERS, SERVED, check_choices, check_count

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
        "none": "DDP",
        "gradients": "ZeRO-2",
        "full": "ZeRO-3, FSDP",
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
        "pipeline": (1, 1000),
        "batch": (1, 1_000_000),
        "tokens": (1, 10**7),
        "answer": (1, 10**6),
        "accumulation": (1, 10_000),
    }
)
OF_TRAINING = ("shard", "accumulation", "optimizer", "checkpoint")
OF_SERVING = ("weights", "cache", "answer")
NAMED: Mapping[str, Iterable[str]] = MappingProxyType(
    {"task": TASKS, "shard": SHARDINGS, "execution": EXECUTIONS, "optimizer": OPTIMIZERS}
)
HOST_GPUS = 8  # that are connected by their own links, as in DGX and HGX machines


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A way to run a model.

    Attributes:
        gpus: all of them.
        tensor_parallel: GPUs that share each layer.
        pipeline: stages of as many layers, each on `tensor_parallel` GPUs; further GPUs have batches of their own.
        shard: what data-parallel GPUs share in training.
        batch: sequences or samples that a group of GPUs with all layers has at once.
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
    pipeline: int = 1

    def __post_init__(self) -> None:
        """Refuse values that cannot be.

        Raises:
            InvalidInput: names the value and what is accepted.
        """
        for name in LIMITS:
            check_count(name, getattr(self, name), limits=LIMITS, least=0 if name == "tokens" else None)
        check_choices(
            ("task", self.task, TASKS),
            ("shard", self.shard, SHARDINGS),
            ("execution", self.execution, EXECUTIONS),
            ("dtype", self.dtype, DTYPES),
            ("weights", self.weights or "bf16", SERVED),
            ("cache dtype", self.cache or "bf16", SERVED),
            ("optimizer", self.optimizer, OPTIMIZERS),
        )
        if self.gpus % self.tensor_parallel:
            raise InvalidInput.of("tensor parallel", self.tensor_parallel, f"divisors of the {self.gpus} GPUs")
        if self.gpus % (self.tensor_parallel * self.pipeline):
            groups = self.gpus // self.tensor_parallel
            raise InvalidInput.of(
                "pipeline", self.pipeline, f"divisors of the {groups} GPUs or groups that share layers"
            )
        if self.network_gbs is not None and not 0 < self.network_gbs <= 10_000:
            raise InvalidInput.of("network", self.network_gbs, "GB/s from above 0 to 10,000")

    @property
    def is_trained(self) -> bool:
        """Whether it is a training step."""
        return self.task == "train"

    @property
    def replicas(self) -> int:
        """Groups of GPUs that have a batch each."""
        return self.gpus // (self.tensor_parallel * self.pipeline)

    @property
    def micro_batches(self) -> int:
        """Batches of a step or pass that follow each other through the stages of a pipeline."""
        return self.accumulation if self.is_trained else min(self.pipeline, self.batch)

    @property
    def weight_dtype(self) -> str:
        """Dtype that the weights of a server are stored in."""
        return self.weights or {"tf32": "fp32"}.get(self.dtype, self.dtype)

    @property
    def cache_dtype(self) -> str:
        """Dtype of a server's keys and values."""
        return self.cache or {"tf32": "fp32", "fp8": "bf16"}.get(self.dtype, self.dtype)


def plan_of(typed: Mapping[str, str], *, heads: int = 0) -> ModelPlan:
    """Return the plan that was typed: fields of ModelPlan as text, empty or missing ones by default.

    GPUs of a server of a model that generates tokens share layers by default, as many as a host connects and divide its
    heads; others have batches of their own.

    Args:
        heads: of the attention of a model that generates tokens; 1 of others, 0 where they are unknown.

    Raises:
        InvalidInput: names the value and what is accepted.
    """
    given = {name: text.strip() for name, text in typed.items() if text and text.strip()}
    found: dict[str, Any] = {name: _read(name, text) for name, text in given.items()}
    is_trained = found.get("task") == "train"
    of_others = OF_SERVING if is_trained else OF_TRAINING
    for name in of_others:
        if found.get(name):
            only = "serving" if is_trained else "training"
            raise InvalidInput(f"{name} {given[name][:60]!r} applies to {only} only: leave it out")
    if is_trained:
        found.setdefault("execution", "eager")
        if found.get("gpus", 1) > found.get("tensor_parallel", 1) and found.get("pipeline", 1) == 1:
            found.setdefault("shard", "full")
    stages = found.get("pipeline", 1)
    found.setdefault("gpus", found.get("tensor_parallel", 1) * stages)
    if not is_trained and found["gpus"] % stages == 0:
        groups = found["gpus"] // stages
        found.setdefault("tensor_parallel", next(n for n in range(HOST_GPUS, 0, -1) if groups % n == heads % n == 0))
    return ModelPlan(**found)


def _read(name: str, text: str) -> object:
    """Return the value of a field that was typed; `ModelPlan` refuses names that are none of its own.

    Raises:
        InvalidInput: no such field, or no number where one is wanted.
    """
    if name in LIMITS:
        return check_count(name, text, limits=LIMITS)
    if name == "network_gbs":
        rate = read_number(text)
        if rate is None:
            raise InvalidInput.of("network", text, "GB/s of a host to others, like 400")
        return rate
    if name in ("checkpoint", "fused_attention"):
        return text.casefold() in ("yes", "true", "1", "on")
    require(
        name in (*NAMED, "dtype", "weights", "cache"),
        "setting",
        name,
        (*LIMITS, *NAMED, "dtype", "weights", "cache", "checkpoint"),
    )
    return in_any_case(text, NAMED[name]) if name in NAMED else spelled(text)
