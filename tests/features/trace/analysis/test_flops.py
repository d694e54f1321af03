"""FLOPs and bytes of a call: against torch's own counter, and by hand."""

import pytest

from gpuexplore.features.trace.analysis.call_kinds import ATTENTION, KINDS, kind_of
from gpuexplore.features.trace.analysis.events import read_trace
from gpuexplore.features.trace.analysis.flops import FORMULAS, flop_count, may_be_masked
from gpuexplore.features.trace.analysis.moved_bytes import MOVES, byte_count
from tests.features.trace.analysis.made import as_bytes, called, operation

Q, K = (2, 8, 32, 16), (2, 4, 24, 16)


def call(name, *dims, kind="float", values=(), strides=None):
    made = operation(f"aten::{name}", 0.0, 1.0, 1, *dims, kind=kind, values=values)
    if strides is not None:
        made["args"]["Input Strides"] = strides
    (found,) = read_trace("t", as_bytes({"traceEvents": [made]})).calls
    return found


IMAGE, WEIGHT, GRADIENT = (2, 6, 17, 19), (8, 6, 3, 5), (2, 8, 9, 9)
STEPS = ("[2, 2]", "[1, 1]", "[1, 1]")


@pytest.mark.parametrize(
    ("name", "dims", "values", "by_hand"),
    [
        ("mm", ((3, 5), (5, 7)), (), 2 * 3 * 5 * 7),
        ("addmm", ((7,), (3, 5), (5, 7)), ("1", "1"), 2 * 3 * 5 * 7),
        ("bmm", ((4, 3, 5), (4, 5, 7)), (), 4 * 2 * 3 * 5 * 7),
        ("baddbmm", ((4, 3, 7), (4, 3, 5), (4, 5, 7)), (), 4 * 2 * 3 * 5 * 7),
        ("linear", ((2, 3, 5), (7, 5), (7,)), (), 2 * 6 * 5 * 7),
        ("conv2d", (IMAGE, WEIGHT, (8,)), (*STEPS, "1"), 2 * 2 * 9 * 9 * 8 * 6 * 15),
        ("mv", ((3, 5), (5,)), (), 2 * 3 * 5),
        ("addmv_", ((3,), (3, 5), (5,)), ("1", "1"), 2 * 3 * 5),
        ("_int_mm", ((3, 5), (5, 7)), (), 2 * 3 * 5 * 7),
        ("mv", ((3, 5), (6,)), (), None),
        ("mm", ((3, 5), (6, 7)), (), None),
        ("mm", ((3, 5, 2), (5, 7)), (), None),
        ("mm", ((3, 5),), (), None),
        ("conv2d", (IMAGE, WEIGHT, (8,)), (), None),
        ("relu", ((3, 5),), (), None),
    ],
)
def test_flops_are_those_worked_out_by_hand(name, dims, values, by_hand):
    assert flop_count(call(name, *dims, values=values)) == by_hand


def test_flops_of_convolutions_and_attention_are_those_of_torch():
    counter = pytest.importorskip("torch.utils.flop_counter")
    sdpa = "_scaled_dot_product_flash_attention"
    forward = (*STEPS, "False", "[0, 0]", "1")
    transposed = (*STEPS, "True", "[0, 0]", "1")
    back = call("convolution_backward", GRADIENT, IMAGE, WEIGHT, values=("[8]", *forward, "[True, True, True]"))
    unused = (None, None, None, None, False, None, None)

    for ours, theirs in (
        (call("convolution", IMAGE, WEIGHT, (8,), values=forward), counter.conv_flop_count(IMAGE, WEIGHT, GRADIENT)),
        (
            call("convolution", GRADIENT, WEIGHT, (6,), values=transposed),
            counter.conv_flop_count(GRADIENT, WEIGHT, IMAGE, transposed=True),
        ),
        (
            back,
            counter.conv_backward_flop(GRADIENT, IMAGE, WEIGHT, *unused, [True, True, True], out_val=(IMAGE, WEIGHT)),
        ),
        (call(sdpa, Q, K, K), counter.sdpa_flop_count(Q, K, K)),
        (call(f"{sdpa}_backward", Q, Q, K, K), counter.sdpa_backward_flop_count(Q, Q, K, K)),
    ):
        assert flop_count(ours) == theirs, ours.name


def attention(name, *arguments):
    """Return a call whose arguments are the dims of tensors, or values."""
    tensors = ((each, "float") if isinstance(each, tuple) else each for each in arguments)
    (found,) = read_trace("t", as_bytes({"traceEvents": [called(name, *tensors)]})).calls
    return found


def placed(name, *tensors, causal, window=(), lengths=()):
    """Return a call of an attention with its tensors and its values at their places."""
    places = ATTENTION[name]
    arguments = [""] * 40
    arguments[places.query : places.query + 3] = tensors
    arguments[places.causal] = causal
    if window:
        arguments[places.window : places.window + 2] = window
    if lengths:
        arguments[places.lengths[0]], arguments[places.lengths[1]] = lengths[:2]
        arguments[places.lengths[2] : places.lengths[2] + 2] = lengths[2:]
    return attention(name, *arguments)


HEADS_FIRST, TOKENS_FIRST = (2, 8, 32, 16), (2, 32, 8, 16)
SEEN = 32 * 33 // 2


@pytest.mark.parametrize("name", ATTENTION)
def test_a_causal_flag_leaves_the_pairs_below_the_diagonal(name):
    tensor = TOKENS_FIRST if ATTENTION[name].by_tokens else HEADS_FIRST
    products = 5 if ATTENTION[name].is_backward else 2
    causal, whole, unsaid = (flop_count(placed(name, *[tensor] * 3, causal=flag)) for flag in ("True", "False", ""))

    assert whole == unsaid == 2 * products * 16 * 32 * 32 * 16
    assert causal == 2 * products * 16 * SEEN * 16
    assert not may_be_masked(placed(name, *[tensor] * 3, causal="True"))
    assert may_be_masked(placed(name, *[tensor] * 3, causal=""))


def test_the_places_of_torchs_attentions_are_those_of_its_schemas():
    ops = pytest.importorskip("torch").ops.aten
    for name in (each for each in ATTENTION if each.startswith("aten::")):
        places = ATTENTION[name]
        names = [each.name for each in getattr(ops, name.removeprefix("aten::")).default._schema.arguments]
        window = names[places.window : places.window + 2] if places.window else []
        lengths = places.lengths and [names[each] for each in (*places.lengths, places.lengths[2] + 1)]

        assert names[places.causal] in ("is_causal", "custom_mask_type"), name
        assert names[places.query : places.query + 3] == ["query", "key", "value"], name
        assert places.mask is None or names[places.mask] in ("attn_mask", "attn_bias", "bias"), name
        assert {names[each] for each in places.band} <= {"window_size"}, name
        assert window in ([], ["window_size_left", "window_size_right"]), name
        assert lengths in (
            None,
            ["cum_seq_q", "cum_seq_k", "max_q", "max_k"],
            ["cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k"],
        ), name
        assert {names[each] for each in places.unknown} <= {"seqused_k", "block_table", "seqlen_k"}, name


def test_a_causal_mask_ends_where_its_kernel_ends_it_and_a_window_leaves_the_keys_beside_the_diagonal():
    few, many = (1, 1, 4, 8), (1, 1, 16, 8)
    by_tokens = (1, 4, 1, 8), (1, 16, 1, 8)
    efficient = "aten::_efficient_attention_forward"

    def flops(name, query, key, causal="True"):
        return flop_count(placed(name, query, key, key, causal=causal)) // (4 * 8)

    assert flops("aten::_scaled_dot_product_efficient_attention", few, many) == 1 + 2 + 3 + 4
    assert flops("flash_attn::_flash_attn_forward", *by_tokens) == 13 + 14 + 15 + 16
    assert flops("flash_attn::_flash_attn_forward", *reversed(by_tokens)) == 1 + 2 + 3 + 4
    assert [flops(efficient, *by_tokens, kind) for kind in "012"] == [64, 10, 58]

    name, tensor = "flash_attn::_flash_attn_forward", (1, 8, 1, 4)

    def pairs(causal, left, right):
        return flop_count(placed(name, *[tensor] * 3, causal=causal, window=(left, right))) // (4 * 4)

    assert pairs("True", "2", "0") == 1 + 2 + 6 * 3
    assert pairs("True", "-1", "-1") == 36
    assert pairs("False", "1", "1") == 2 + 6 * 3 + 2
    assert pairs("False", "-1", "-1") == 64


@pytest.mark.parametrize(
    ("name", "band"),
    [
        ("aten::_efficient_attention_forward", 13),
        ("aten::_efficient_attention_backward", 18),
        ("xformers::efficient_attention_forward_cutlass", 12),
        ("xformers::efficient_attention_forward_cutlass", 13),
    ],
)
def test_a_band_is_of_so_many_keys_with_the_querys_own(name, band):
    places, arguments = ATTENTION[name], [""] * 20
    arguments[places.query : places.query + 3] = [(1, 8, 1, 4)] * 3
    arguments[places.causal] = "1"
    products = 5 if places.is_backward else 2

    def pairs(keys):
        arguments[band] = keys
        return flop_count(attention(name, *arguments)) // (2 * products * 4)

    assert [pairs(keys) for keys in ("", "0", "1", "3", "8")] == [36, 36, 8, 1 + 2 + 6 * 3, 36]


@pytest.mark.parametrize("name", ["flash_attn_3::bwd", "flash_attn_3::_flash_attn_backward"])
def test_arguments_that_a_trace_leaves_out_stand_for_their_defaults(name):
    shortened = attention(name, *[TOKENS_FIRST] * 5, (2, 8, 32))

    assert flop_count(shortened) == 10 * 16 * 32 * 32 * 16
    assert may_be_masked(shortened)


def test_heads_of_xformers_may_be_two_axes_and_keys_in_pages_have_no_known_number():
    grouped = attention("xformers_flash::flash_fwd", *[(2, 32, 4, 2, 16)] * 3, *[""] * 7, "False", "-1", "-1")
    paged = [(96, 4, 8), (700, 16, 4, 8), (700, 16, 4, 8), "", (2,), (2,), "", "", (1, 6), "", "96", "96"]

    assert flop_count(grouped) == 4 * 16 * 32 * 32 * 16
    assert flop_count(attention("_vllm_fa2_C::varlen_fwd", *paged, "0.", "0.1", "False", "True")) is None


def test_complex_products_are_four_real_ones_and_packed_numbers_two():
    complexes = {"c10::complex<float>": 4, "c10::complex<double>": 4}
    products = {"float": 1, **complexes, "c10::Float8_e5m2": 1, "c10::Float4_e2m1fn_x2": 2}

    assert {kind: flop_count(call("mm", (3, 5), (5, 7), kind=kind)) // 210 for kind in products} == products


def test_packed_sequences_are_known_where_all_are_alike_or_there_is_one():
    name, packed = "flash_attn::_flash_attn_varlen_forward", (96, 4, 8)

    def pairs(starts, longest, causal="False"):
        lengths = ((starts,), (starts,), longest, longest)
        found = flop_count(placed(name, *[packed] * 3, causal=causal, lengths=lengths))
        return found and found // (4 * 8 * 4)

    assert pairs(2, "96") == 96 * 96
    assert pairs(4, "32") == 3 * 32 * 32
    assert pairs(4, "32", "True") == 3 * SEEN
    assert pairs(4, "64") is None, "the lengths themselves are in no trace"


@pytest.mark.parametrize("shape", [(2, 32, 8, 16), (32, 2, 8, 16)])
def test_tokens_are_the_axis_as_long_as_the_longest_sequence(shape):
    fused = placed("FusedAttnFunc", *[shape] * 3, causal="", lengths=((3,), (3,), "32", "32"))

    assert flop_count(fused) == 4 * 2 * 8 * 32 * 32 * 16
    assert may_be_masked(fused)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("vllm::unified_attention_with_output", "attention"),
        ("flashinfer::batch_prefill_with_paged_kv_cache_attn", "attention"),
        ("sgl_kernel::cutlass_mla_attention", "attention"),
        ("_rocm_C::paged_attention", "attention"),
        ("transformer_engine::fused_attn_backward", "attention"),
        ("FlashAttnFuncBackward", None),
        ("aten::_native_multi_head_attention", None),
        ("autograd::engine::evaluate_function: FlashAttnFuncBackward", None),
        ("triton_poi_fused__scaled_dot_product_flash_attention_cat_3", None),
        ("aten::relu_", "element-wise operations"),
        ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128>>", "attention"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64", "matrix products"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", "matrix products"),
        ("sm80_xmma_dgrad_implicit_gemm_indexed_f32f32", "convolutions"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("record_param_comms", "communication"),
        ("fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function", None),
        ("void vllm::convert_fp8_kernel<unsigned char>", None),
        ("Memcpy DtoD (Device -> Device)", "copies"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", "copies"),
    ],
)
def test_other_packages_and_kernels_are_of_the_kind_in_their_names(name, kind):
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("made", "by_hand"),
    [
        (call("add", (8, 1), (1, 4), values=("1",)), 4 * (8 + 4 + 32)),
        (call("add_", (8, 4), (8, 4), kind="c10::Half"), 2 * 3 * 32),
        (call("copy_", (8, 4), (8, 4)), 4 * 64),
        (call("copy_", (8, 4), (8, 4), strides=[[4, 1], [0, 1]]), 4 * (32 + 4)),
        (call("relu", (8, 4)), 4 * 64),
        (call("sum", (8, 4)), 4 * 33),
        (call("mm", (3, 5), (5, 7)), 4 * (15 + 35 + 21)),
        (call("linear", (2, 3, 5), (7, 5)), 4 * (30 + 35 + 42)),
        (call("bmm", (4, 3, 5), (4, 5, 7)), 4 * 4 * (15 + 35 + 21)),
        (call("conv2d", IMAGE, WEIGHT, values=("", *STEPS)), 4 * (2 * 6 * 17 * 19 + 8 * 6 * 15 + 2 * 8 * 9 * 9)),
        (call("view", (8, 4)), None),
        (call("add", (8, 4), (8, 4), kind="unheard of"), None),
        (call("add"), None),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else None,
)
def test_bytes_are_those_worked_out_by_hand(made, by_hand):
    assert byte_count(made) == by_hand


def test_operations_with_a_formula_or_a_rule_are_of_a_kind():
    assert {name for name in (*FORMULAS, *MOVES) if kind_of(name) is None} == set()
    assert len([name for names in KINDS.values() for name in names]) == len(set().union(*KINDS.values()))
