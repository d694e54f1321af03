"""Operations of a pass or a training step of any `nn.Module`, as torch calls them on tensors without numbers.

Products, convolutions and attention are parts by their shapes; other operations are so by the bytes they move; views
cost nothing. Attention is asked for without dropout: torch's kernels for GPUs fuse that, the one for CPUs does not.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from gpuexplore.core.model import Shape
from gpuexplore.features.model.analysis.parts import FUSED, Part, elements_part, product_part, within_limits
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.measure.tracked import Loss, fake_copy, fake_tensor, peak_of, sum_of

DTYPES: Mapping[torch.dtype, str] = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float64: "fp64",
}
OF_TORCH: Mapping[str, torch.dtype] = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.bfloat16,
}
# That move bytes and are tagged neither as element-wise nor as a reduction; without what marks variants of them.
MOVING = frozenset(
    {
        "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
        "_batch_norm_with_update",
        "_embedding_bag",
        "_foreach_add",
        "_fused_rms_norm",
        "_index_put_impl_",
        "_log_softmax",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training",
        "_prelu_kernel",
        "_safe_softmax",
        "_softmax",
        "_to_copy",
        "_unsafe_index",
        "adaptive_max_pool2d",
        "arange",
        "argmax",
        "argmin",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "batch_norm",
        "bernoulli",
        "binary_cross_entropy",
        "bucketize",
        "cat",
        "clone",
        "col2im",
        "constant_pad_nd",
        "copy",
        "cummax",
        "cumprod",
        "cumsum",
        "embedding",
        "embedding_dense",
        "eye",
        "fill",
        "flip",
        "full",
        "full_like",
        "fused_rms_norm",
        "gather",
        "glu",
        "im2col",
        "index",
        "index_add",
        "index_copy",
        "index_put",
        "index_select",
        "linspace",
        "log_sigmoid",
        "logcumsumexp",
        "logsumexp",
        "masked_fill",
        "masked_scatter",
        "masked_select",
        "max",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "mean",
        "min",
        "mse_loss",
        "multinomial",
        "native_batch_norm",
        "native_dropout",
        "native_group_norm",
        "native_layer_norm",
        "new_full",
        "new_ones",
        "new_zeros",
        "nll_loss",
        "nll_loss2d",
        "normal",
        "ones",
        "ones_like",
        "pixel_shuffle",
        "rand",
        "rand_like",
        "randint",
        "randn",
        "randn_like",
        "randperm",
        "reflection_pad1d",
        "reflection_pad2d",
        "repeat",
        "replication_pad1d",
        "replication_pad2d",
        "roll",
        "rsub",
        "scalar_tensor",
        "scatter",
        "scatter_add",
        "select",
        "select_scatter",
        "slice",
        "slice_scatter",
        "smooth_l1_loss",
        "sort",
        "split_with_sizes_copy",
        "stack",
        "sum",
        "topk",
        "tril",
        "triu",
        "unfold",
        "unfold_copy",
        "uniform",
        "upsample_bicubic2d",
        "upsample_bilinear2d",
        "upsample_linear1d",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "upsample_trilinear3d",
        "var",
        "var_mean",
        "zero",
        "zeros",
        "zeros_like",
    }
)
GATHERING = ("embedding", "index", "index_select", "gather", "_unsafe_index")  # of their first argument a part is read
NOTHING = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "lift_fresh", "detach")
DROPOUT_ARGUMENT = 10  # of multi_head_attention_forward, which torch's module gives by position
ATTENTION = (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)


@dataclass(frozen=True, slots=True)
class _Traced:
    """A pass of a module, or a training step without its optimizer.

    Attributes:
        parts: its operations, equal ones once.
        kernels: operations that a host launches.
        unknown: operations that are in no part, by name with how often they were called.
        peak_bytes: of a pass without gradients; None of a training step.
        weights: numbers of its trainable parameters, or of all of them where it is not trained.
    """

    parts: tuple[Part, ...]
    kernels: int
    unknown: Mapping[str, int]
    peak_bytes: int | None
    weights: int


def traced_step(module: torch.nn.Module, inputs: Sequence[Any], *, loss: Loss | None, plan: ModelPlan) -> _Traced:
    """Return the operations of `loss(module(*inputs)).backward()`, or of a forward pass alone.

    Args:
        module: as it is run; it is not changed.
        inputs: what it is called with.
        loss: of what it returns; None: the sum of its numbers.
        plan: whether it is trained, and in which dtype: by autocast in training, cast as a whole otherwise.
    """
    module = getattr(module, "_orig_mod", module)  # of torch.compile
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    dtype = None if _is_mixed(module, plan) else OF_TORCH[plan.dtype]
    copied = fake_copy(module, mode, dtype)
    arguments = tuple(tree_map(partial(fake_tensor, mode, dtype=dtype), value) for value in inputs)
    if copied.training != plan.is_trained:  # a part may be kept from training on purpose: frozen normalization
        copied.train(plan.is_trained)
    recorder = _Recorder(plan)
    tracker = None if plan.is_trained else MemTracker()
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    was_enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)  # its recurrent layers are one operation
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.set_grad_enabled(plan.is_trained))
            stack.enter_context(mode)
            if tracker:
                tracker.track_external(copied, *(leaf for leaf in tree_leaves(arguments) if torch.is_tensor(leaf)))
                stack.enter_context(tracker)
            stack.enter_context(_WithoutDropout())
            stack.enter_context(recorder)
            with casting(module, plan):
                found = copied(*arguments)
                found = (loss or sum_of)(found) if plan.is_trained else found
            if plan.is_trained:
                recorder.suffix = ", backward"
                found.backward()
    finally:
        torch.backends.mkldnn.set_flags(_enabled=was_enabled)
        torch.backends.mha.set_fastpath_enabled(was_fast)
    return _Traced(
        tuple(replace(part, count=count * part.count) for part, count in recorder.parts.items()),
        recorder.kernels,
        dict(recorder.unknown),
        peak_of(tracker)["Total"] if tracker else None,
        sum(weight.numel() for weight in module.parameters() if weight.requires_grad or not plan.is_trained),
    )


def _is_mixed(module: torch.nn.Module, plan: ModelPlan) -> bool:
    own = {weight.dtype for weight in module.parameters() if weight.is_floating_point()}
    return plan.is_trained and own == {torch.float32} and OF_TORCH[plan.dtype] != torch.float32


def casting(module: torch.nn.Module, plan: ModelPlan) -> torch.autocast:
    """Return the context of a forward pass: autocast to 16 bits in the training of a module in fp32."""
    is_mixed = _is_mixed(module, plan)
    return torch.autocast("cpu", OF_TORCH[plan.dtype] if is_mixed else torch.bfloat16, enabled=is_mixed)


def batch_of(inputs: Sequence[Any]) -> tuple[int, int]:
    """Return the samples of a batch, and the tokens of each; no tokens unless they are indices in rows."""
    first = next((leaf for leaf in tree_leaves(inputs) if torch.is_tensor(leaf) and leaf.dim()), None)
    if first is None:
        return 1, 0
    is_tokens = first.dim() == 2 and not first.is_floating_point()
    return first.shape[0], first.shape[1] if is_tokens else 0


class _WithoutDropout(TorchFunctionMode):
    """Attention as kernels for GPUs compute it: without a dropout of its own, with fewer heads of keys."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        kwargs = dict(kwargs or {})
        if func is torch.nn.functional.scaled_dot_product_attention:
            kwargs |= dict(zip(("attn_mask", "dropout_p"), args[3:5], strict=False)) | {"dropout_p": 0.0}
            query, key, value = (*args, *map(kwargs.pop, ("query", "key", "value")[len(args) :]))[:3]
            if kwargs.pop("enable_gqa", False):
                each = query.shape[-3] // key.shape[-3]
                key, value = (part.repeat_interleave(each, -3) for part in (key, value))
            kwargs |= {"is_causal": args[5]} if len(args) > 5 else {}
            return func(query, key, value, **kwargs)
        if func is torch.nn.functional.multi_head_attention_forward:
            undisturbed = (*args[:DROPOUT_ARGUMENT], 0.0, *args[DROPOUT_ARGUMENT + 1 :])
            calling: Any = func
            return calling(*undisturbed, **kwargs)
        return func(*args, **kwargs)


class _Recorder(TorchDispatchMode):
    """The operations that torch calls, as parts."""

    def __init__(self, plan: ModelPlan) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.parts: Counter[Part] = Counter()
        self.unknown: Counter[str] = Counter()
        self.kernels = 0
        self.suffix = ""
        self._plan = plan

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operation of torch, and record it."""
        kwargs = kwargs or {}
        if func.namespace == "prim":  # a tensor's device
            return func(*args, **kwargs)
        with self:
            found = func.decompose(*args, **kwargs)  # of what is composed of others
        if found is NotImplemented:
            found = func(*args, **kwargs)
            self._record(func, args, kwargs, found)
        return found

    def _record(self, func: Any, args: Any, kwargs: Any, found: Any) -> None:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if torch.is_tensor(leaf)]
        made = [leaf for leaf in tree_leaves(found) if torch.is_tensor(leaf)]
        namespace, _, name = func._schema.name.partition("::")
        stem = re.sub(r"(_forward|_backward_data|_backward)?_?$", "", name)
        if name in NOTHING or not made or _is_view(func, given, made):
            return
        parts = list(self._products(name, args, given, made)) if namespace == "aten" else []
        if not parts and ({torch.Tag.pointwise, torch.Tag.reduction} & {*func.tags} or stem in MOVING):
            is_gathering = name in GATHERING
            moved = sum({_storage(each): _bytes(each) for each in (*given[is_gathering:], *made)}.values())
            moved += sum(map(_bytes, made)) if is_gathering else 0
            fused = 1.0 if self._plan.execution == "eager" else FUSED
            parts = [elements_part(moved * fused, min(max(each.itemsize for each in made), 4))]
        if not parts:
            self.unknown[str(func).removesuffix(".default")] += 1
        self.kernels += len(parts)
        self.parts.update(replace(part, name=part.name + self.suffix) for part in parts)

    def _products(self, name: str, args: Any, given: list[Any], made: list[Any]) -> Iterator[Part]:
        """Yield the products that an operation is; none of another."""
        dtype = DTYPES.get(made[0].dtype, "")
        moved = float(sum(map(_bytes, (*given, *made))))
        dtype = "tf32" if dtype == "fp32" and self._plan.dtype == "tf32" else dtype
        if name in ("mm", "addmm") and dtype:
            left, right = args[-2:] if name == "mm" else args[1:3]
            dtype = "fp8" if self._plan.dtype == "fp8" and dtype == "bf16" else dtype
            yield product_part((left.shape[0], left.shape[1], right.shape[1]), dtype, moved)
        elif name in ("bmm", "baddbmm") and dtype:
            left, right = args[:2] if name == "bmm" else args[1:3]
            count, rows, terms = left.shape
            columns = right.shape[2]
            shape = Shape.of(outer=1, inner=count, m=rows, k=terms, n=columns, right=count)
            calls, shape = within_limits("batched_matmul", shape)
            flop_count = 2.0 * count * rows * terms * columns
            yield Part("batched product", "attention", "batched_matmul", shape, dtype, 1, calls, flop_count, moved)
        elif name in ("convolution", "_convolution") and dtype:
            yield _convolution(args[0], args[1], made[0], dtype=dtype, transposed=args[6])
        elif name == "convolution_backward" and dtype:
            part = _convolution(args[1], args[2], args[0], dtype=dtype, transposed=args[7])
            yield from (part for wanted in args[10][:2] if wanted)
        elif name.removesuffix("_backward") in ATTENTION and dtype:
            yield _attention(args, dtype=dtype, is_backward=name.endswith("_backward"))


def _attention(args: Any, *, dtype: str, is_backward: bool) -> Part:
    query, key, value = args[is_backward : is_backward + 3]
    batch, heads, queries, head = query.shape
    keys = key.shape[-2]
    is_causal = any(each is True for each in args)
    axes = {"b": batch, "h": heads, "s": queries, "d": head}
    calls, shape = within_limits("attention", Shape.of(**axes, causal=1) if is_causal else Shape.of(**axes))
    flop_count = 2.0 * batch * heads * queries * keys * (head + value.shape[-1])
    if is_causal:
        flop_count *= (queries + 1) / (2 * queries)
    moved = float(sum(map(_bytes, (query, key, value, query))))
    times = calls * keys / queries * (2.5 if is_backward else 1.0)  # five products instead of two
    flop_count *= 2 if is_backward else 1
    return Part("attention", "attention", "attention", shape, dtype, 1, times, flop_count, moved)


def _convolution(data: Any, weight: Any, result: Any, *, dtype: str, transposed: bool) -> Part:
    """Return the part of a convolution: each element of its result, or of a transposed one's input, is products."""
    points = data if transposed else result
    batch, _, *sides = points.shape
    kernels, channels, *window = weight.shape
    flop_count = 2.0 * batch * prod(sides) * weight.numel()
    moved = float(_bytes(data) + _bytes(weight) + _bytes(result))
    name = f"conv {' × '.join(map(str, window))}, {channels} → {kernels}"
    if len(window) == 2 and window[0] == window[1] and not transposed:
        shape = Shape.of(b=batch, c=channels, h=sides[0], w=sides[1], o=kernels, r=window[0])
        calls, shape = within_limits("conv2d", shape)
        return Part(name, "products", "conv2d", shape, dtype, 1, calls, flop_count, moved)
    part = product_part((batch * prod(sides), channels * prod(window), kernels), dtype, moved)
    return replace(part, name=name, flop_count=flop_count)


def _is_view(func: Any, given: Sequence[Any], made: Sequence[Any]) -> bool:
    known = {_storage(each) for each in given}
    return not func._schema.is_mutable and all(_storage(each) in known for each in made)


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _bytes(tensor: Any) -> int:
    """Return the bytes that reading a tensor moves: of one that is expanded, those that are stored."""
    return min(tensor.numel() * tensor.itemsize, tensor.untyped_storage().nbytes())
