"""Which modifiers of each instruction are known here: any other is named, for left out it could change the result."""

from gpuexplore.errors import Unsupported
from gpuexplore.kernels.ptx.program import Instruction

_WHOLE = frozenset({"s16", "u16", "s32", "u32", "s64", "u64"})
_SMALL = frozenset({"s8", "u8"})
_BITS = frozenset({"b16", "b32", "b64"})
_WIDE_FLOATS = frozenset({"f32", "f64"})
_FLOATS = _WIDE_FLOATS | {"f16", "bf16"}
_PAIRS = frozenset({"f16x2", "bf16x2"})
_ROUNDING = frozenset({"rn", "rz", "rm", "rp"})
_LIMITING = frozenset({"ftz", "sat"})
_SUM = _WHOLE | _FLOATS | _PAIRS | _ROUNDING | _LIMITING
_ORDER = frozenset({"weak", "relaxed", "acquire", "release", "volatile", "cta", "cluster", "gpu", "sys"})
_SPACES = frozenset({"global", "shared", "local", "param", "const"})
_CACHING = frozenset({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1", "L2"})
_ACCESS = _ORDER | _SPACES | _CACHING | _WHOLE | _SMALL | _BITS | _WIDE_FLOATS | {"b8", "v2", "v4"}
_ORDERED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_COMPARISONS = _ORDERED | {f"{name}u" for name in _ORDERED} | {"lo", "ls", "hi", "hs", "num", "nan"}
_LOGIC = _BITS | {"pred"}
_APPROXIMATE = _FLOATS | _PAIRS | {"approx", "ftz"}
_UPDATES = frozenset(["add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas", "noftz"])
_ATOMIC = _ORDER | _UPDATES | {"global", "shared"} | _WHOLE | _BITS | _FLOATS | _PAIRS
KNOWN: dict[str, frozenset[str]] = {
    "ld": _ACCESS - {"release"},
    "st": _ACCESS - {"acquire", "nc"},
    "cp": frozenset({"async", "ca", "cg", "shared", "global", "L2", "commit_group", "wait_group", "wait_all"}),
    "add": _SUM,
    "sub": _SUM,
    "mul": _SUM | {"lo", "hi", "wide"},
    "mad": _WHOLE | _WIDE_FLOATS | _ROUNDING | _LIMITING | {"lo", "hi", "wide"},
    "fma": _FLOATS | _PAIRS | _ROUNDING | _LIMITING,
    "div": _WHOLE | _WIDE_FLOATS | _ROUNDING | {"approx", "full", "ftz"},
    "rem": _WHOLE,
    "min": _WHOLE | _FLOATS | _PAIRS | {"ftz", "NaN"},
    "max": _WHOLE | _FLOATS | _PAIRS | {"ftz", "NaN"},
    "abs": _WHOLE | _FLOATS | _PAIRS | {"ftz"},
    "neg": _WHOLE | _FLOATS | _PAIRS | {"ftz"},
    "copysign": _WIDE_FLOATS,
    "rcp": _WIDE_FLOATS | _ROUNDING | {"approx", "ftz"},
    "sqrt": _WIDE_FLOATS | _ROUNDING | {"approx", "ftz"},
    "rsqrt": _WIDE_FLOATS | {"approx", "ftz"},
    "ex2": _APPROXIMATE,
    "lg2": _APPROXIMATE,
    "sin": _APPROXIMATE,
    "cos": _APPROXIMATE,
    "tanh": _APPROXIMATE,
    "and": _LOGIC,
    "or": _LOGIC,
    "xor": _LOGIC,
    "not": _LOGIC,
    "cnot": _BITS,
    "shl": _BITS,
    "shr": _BITS | _WHOLE,
    "shf": frozenset({"l", "r", "wrap", "clamp", "b32"}),
    "bfe": _WHOLE,
    "bfi": _BITS,
    "prmt": frozenset({"b32"}),
    "lop3": frozenset({"b32"}),
    "popc": _BITS,
    "clz": _BITS,
    "brev": _BITS,
    "setp": _COMPARISONS | {"and", "or", "xor", "ftz"} | _WHOLE | _BITS | _FLOATS,
    "set": _COMPARISONS | {"ftz"} | _WHOLE | _BITS | _FLOATS,
    "selp": _WHOLE | _BITS | _FLOATS,
    "slct": _WHOLE | _BITS | _WIDE_FLOATS | {"ftz"},
    "mov": _WHOLE | _LOGIC | _WIDE_FLOATS | {"f16", "bf16"},
    "cvta": frozenset({"to", "u32", "u64"}) | _SPACES,
    "cvt": _SUM | _SMALL | {"rni", "rzi", "rmi", "rpi", "rna", "relu", "tf32"},
    "bra": frozenset({"uni"}),
    "ret": frozenset({"uni"}),
    "exit": frozenset(),
    "bar": frozenset({"sync", "warp", "cta"}),
    "barrier": frozenset({"sync", "aligned", "cta"}),
    "membar": frozenset({"gl", "cta", "sys"}),
    "fence": _ORDER | {"sc", "acq_rel", "proxy", "async", "alias", "global", "shared"},
    "prefetch": frozenset({"global", "local", "L1", "L2"}),
    "shfl": frozenset({"sync", "up", "down", "bfly", "idx", "b32"}),
    "vote": frozenset({"sync", "all", "any", "uni", "ballot", "pred", "b32"}),
    "activemask": frozenset({"b32"}),
    "ldmatrix": frozenset({"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "b16"}),
    "atom": _ATOMIC | {"acq_rel"},
    "red": _ATOMIC,
}


def expect_known_modifiers(instruction: Instruction) -> None:
    """Raise an error that names the first modifier which is not known; `mma` and `wgmma` are known by their whole name.

    Raises:
        Unsupported: there is one.
    """
    known = KNOWN.get(instruction.opcode)
    if known is None:
        return
    for modifier in instruction.modifiers:
        if modifier.split("::")[0] not in known:
            raise Unsupported(f"the modifier .{modifier} of {instruction.opcode} is not known here")
