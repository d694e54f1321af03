"""`wgmma` against np.matmul, its factors laid out element by element as the ISA says, and every rule of its, broken."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx import Grid, LaunchOptions, parse, run
from tests.kernels.ptx.snippets import kernel, launch, pointers

RANDOM = np.random.default_rng(13)
THREADS = 128
CHUNK = 16
SWIZZLES = {1: 0, 2: 3, 4: 2, 8: 1}  # chunks that a pattern spans, and the two highest bits of a descriptor
DTYPE_NAMES = {"bf16": "bf16", "f16": "fp16", "tf32": "tf32"}


@dataclass(frozen=True)
class Tile:
    """A factor in shared memory: `lines` rows or columns, their terms contiguous, or the lines where transposed."""

    lines: int
    width: int
    transposed: bool = False
    size: int = 2  # bytes of an element

    @property
    def strides(self):
        """Leading and stride, in bytes, of tiles without gaps; without swizzling with a gap of a chunk."""
        core = 8 * CHUNK * self.width
        if self.width == 1:
            return core + CHUNK, 2 * (core + CHUNK)
        return (2 * core, core) if self.transposed else (CHUNK, core)

    def offset(self, line, term):
        """Return where an element lies, in bytes from the start of the tile."""
        leading, stride = self.strides
        per_chunk, row = CHUNK // self.size, CHUNK * self.width
        if not self.transposed:
            columns = term // per_chunk * (leading if self.width == 1 else CHUNK) + term % per_chunk * self.size
            at = line % 8 * row + line // 8 * stride + columns
        elif self.width == 1:
            at = line % 8 * self.size + line // 8 * stride + term % 8 * row + term // 8 * leading
        else:
            chunk, pattern = line // 8 % self.width, line // (8 * self.width)
            at = line % 8 * self.size + chunk * CHUNK + pattern * leading + term % 8 * row + term // 8 * stride
        chunk, row = at // CHUNK % 8, at // 128 % 8
        return at + ((chunk ^ row % self.width) - chunk) * CHUNK

    def image(self, matrix):
        """Return a tile's bytes, with (lines, terms) at their offsets."""
        offsets = np.array([[self.offset(*at) for at in np.ndindex(matrix.shape)]]).reshape(matrix.shape)
        image = np.zeros((offsets.max() // 1024 + 1) * 1024, np.uint8)
        for at, offset in np.ndenumerate(offsets):
            image[offset : offset + self.size] = matrix[at].reshape(1).view(np.uint8)
        return image

    def descriptor(self, start):
        """Return the instructions' 64 bits for a tile that starts at an address."""
        leading, stride = self.strides
        return start // 16 | leading // 16 << 16 | stride // 16 << 32 | SWIZZLES[self.width] << 62


def in_braces(first, count, letter="f"):
    return "{" + ", ".join(f"%{letter}{first + i}" for i in range(count)) + "}"


ARRIVE = "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;"
LEAVE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def program(body, *, columns, image_bytes, arrive=ARRIVE, leave=LEAVE, after=""):
    """Return a kernel that copies an image into shared memory, executes `body`, and stores the sums."""
    rounds = image_bytes // (THREADS * CHUNK)
    copies = "".join(
        f"ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%d0+{i * THREADS * CHUNK}];"
        f"st.shared.v4.b32 [%r4+{i * THREADS * CHUNK}], {{%r5, %r6, %r7, %r8}};"
        for i in range(rounds)
    )
    stores = "".join(f"st.global.f32 [%d2+{4 * i}], %f{i};" for i in range(columns // 2))
    text = kernel(
        f"{pointers(3, (CHUNK, CHUNK, 2 * columns))} mov.u32 %r2, tile; shl.b32 %r3, %r0, 4; add.u32 %r4, %r2, %r3;"
        f"{copies} ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%d1]; {arrive} {body} {leave} {stores} {after}",
        arrays=3,
        shared=image_bytes,
    )
    return text.replace("sm_80", "sm_90a").replace("%f<16>", "%f<160>")


def multiplying(kind, columns, a, b, *, adds=1, immediates="1, 1, 0, 0"):
    """Return a product's instruction; `a`: a descriptor, or registers; `b`: a descriptor."""
    depth = 8 if kind == "tf32" else 16
    left = f"mov.b64 %d10, {a:#x};" if isinstance(a, int) else ""
    return (
        f"{left} mov.b64 %d11, {b:#x}; setp.ne.u32 %p1, {adds}, 0;"
        f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{kind}.{kind} "
        f"{in_braces(0, columns // 2)}, {'%d10' if left else a}, %d11, %p1, {immediates};"
    )


def multiplied(text, image, columns, registers=None, **options):
    """Return the report, and the (64, columns) sums that the threads of a warpgroup stored."""
    given = np.zeros((THREADS, 4), np.uint32) if registers is None else registers
    out = np.zeros(THREADS * columns // 2, np.float32)
    report = launch(text, image.view(np.uint32), given.reshape(-1), out, threads=THREADS, **options)
    found = np.full((64, columns), np.nan, np.float32)
    for thread, values in enumerate(report.arrays[2].reshape(THREADS, -1)):
        for i, value in enumerate(values):
            row = thread // 32 * 16 + thread % 32 // 4 + i // 2 % 2 * 8
            found[row, i // 4 * 8 + thread % 4 * 2 + i % 2] = value
    return report, found


def factors(kind, columns):
    """Return both factors, (64, terms) and (columns, terms), as stored and as numbers."""
    dtype = DTYPES[DTYPE_NAMES[kind]]
    depth = 8 if kind == "tf32" else 16
    stored = [dtype.round(RANDOM.standard_normal((lines, depth))) for lines in (64, columns)]
    return stored, [dtype.widen(each).astype(np.float64) for each in stored]


def images(tiles, stored):
    """Return the bytes of several tiles one after the other, filled up to whole rounds of copies, and their starts."""
    made = [tile.image(matrix) for tile, matrix in zip(tiles, stored, strict=True)]
    starts = [0, *np.cumsum([each.size for each in made]).tolist()][:-1]
    whole = np.concatenate(made)
    return np.concatenate([whole, np.zeros(-whole.size % (THREADS * CHUNK), np.uint8)]), starts


@dataclass(frozen=True)
class Product:
    """A product of two tiles: its type, their widths, which are transposed, its columns, the sign of the second."""

    kind: str
    widths: tuple[int, int]
    transposed: tuple[int, int] = (0, 0)
    columns: int = 64
    sign: int = 1


PRODUCTS = [
    *(
        Product(kind, widths, transposed)
        for kind, transposed in (("bf16", (0, 0)), ("f16", (1, 0)), ("bf16", (0, 1)), ("f16", (1, 1)))
        for widths in ((1, 1), (2, 8), (4, 2), (8, 4), (8, 8))
    ),
    *(Product("bf16", (8, 8), columns=columns) for columns in (8, 24, 128, 256)),
    Product("tf32", (2, 4), columns=16, sign=-1),  # of eight terms
]


@pytest.mark.parametrize("copies", ["late", "early"])
@pytest.mark.parametrize("case", PRODUCTS, ids=str)
def test_product_of_two_tiles_is_the_matrix_product(case, copies):
    stored, (a, b) = factors(case.kind, case.columns)
    size = stored[0].itemsize
    lines = zip((64, case.columns), case.widths, case.transposed, strict=True)
    tiles = [Tile(count, width, bool(transposed), size) for count, width, transposed in lines]
    image, starts = images(tiles, stored)
    described = [tile.descriptor(start) for tile, start in zip(tiles, starts, strict=True)]
    turned = "" if case.kind == "tf32" else f", {case.transposed[0]}, {case.transposed[1]}"
    body = multiplying(case.kind, case.columns, *described, adds=0, immediates=f"1, {case.sign}{turned}")

    text = program(body, columns=case.columns, image_bytes=image.size)
    report, found = multiplied(text, image, case.columns, copies=copies)

    assert report.faults == ()
    np.testing.assert_allclose(found, case.sign * a @ b.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_first_factor_may_lie_in_registers(kind):
    stored, (a, b) = factors(kind, 32)
    image, (start,) = images([Tile(32, 4)], stored[1:])
    registers = np.array(
        [
            [
                stored[0][t // 32 * 16 + t % 32 // 4 + i % 2 * 8, [t % 4 * 2 + i // 2 * 8 + half for half in range(2)]]
                for i in range(4)
            ]
            for t in range(THREADS)
        ]
    )
    body = multiplying(kind, 32, in_braces(10, 4, "r"), Tile(32, 4).descriptor(start), immediates="-1, 1, 0")

    report, found = multiplied(
        program(body, columns=32, image_bytes=image.size), image, 32, np.ascontiguousarray(registers).view(np.uint32)
    )

    assert report.faults == ()
    np.testing.assert_allclose(found, -a @ b.T, rtol=1e-6, atol=1e-6)


def two_products(*, adds=1, between="", **parts):
    """Return image, numbers and program of two products of the same sums, whose terms are a step apart in one tile."""
    stored, numbers = zip(*[factors("bf16", 32) for _ in range(2)], strict=True)
    tiles = Tile(64, 4), Tile(32, 4)
    whole = [np.concatenate([first, second], 1) for first, second in zip(*stored, strict=True)]
    image, starts = images(tiles, whole)
    steps = [
        multiplying(
            "bf16", 32, *[t.descriptor(s + k * 32) for t, s in zip(tiles, starts, strict=True)], adds=k and adds
        )
        for k in range(2)
    ]
    return image, numbers, program(between.join(steps), columns=32, image_bytes=image.size, **parts)


@pytest.mark.parametrize("copies", ["late", "early"])
def test_second_product_adds_to_the_first_or_replaces_it(copies):
    for adds in (1, 0):
        image, numbers, text = two_products(adds=adds)
        report, found = multiplied(text, image, 32, copies=copies)

        assert report.faults == ()
        expected = sum(a @ b.T for a, b in numbers[0 if adds else 1 :])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def abouts(**parts):
    image, _, text = two_products(**parts)
    return {copies: {fault.about for fault in run_of(text, image, copies).faults} for copies in ("late", "early")}


def run_of(text, image, copies="late"):
    return multiplied(text, image, 32, copies=copies)[0]


USED_EARLY = "registers of a product in flight are used before wgmma.wait_group"
OVERWRITTEN = "memory that a product in flight still reads is written"
UNFENCED_PROXY = "memory written by threads is read by a product without fence.proxy.async"
UNFENCED = "a product starts without a wgmma.fence before it"
NOT_FENCED_AGAIN = "registers of a product were used without a wgmma.fence after that"
NEXT = "wgmma.commit_group.sync.aligned;"
BROKEN = {
    "no wait": ({"leave": NEXT}, USED_EARLY),
    "wait for one group too few": (
        {"between": NEXT, "leave": f"{NEXT} wgmma.wait_group.sync.aligned 1;"},
        USED_EARLY,
    ),
    "group not closed": ({"leave": "wgmma.wait_group.sync.aligned 0;"}, USED_EARLY),
    "no fence of registers": ({"arrive": "fence.proxy.async; bar.sync 0;"}, UNFENCED),
    "sums changed after the fence": ({"arrive": f"{ARRIVE} mov.f32 %f0, 0f00000000;"}, NOT_FENCED_AGAIN),
    "no fence of the proxy": ({"arrive": "bar.sync 0; wgmma.fence.sync.aligned;"}, UNFENCED_PROXY),
    "fence of the proxy for device memory": (
        {"arrive": "fence.proxy.async.global; bar.sync 0; wgmma.fence.sync.aligned;"},
        UNFENCED_PROXY,
    ),
    "write after the fence of the proxy": (
        {"arrive": "fence.proxy.async; st.shared.b32 [%r4], %r10; bar.sync 0; wgmma.fence.sync.aligned;"},
        UNFENCED_PROXY,
    ),
    "no barrier": (
        {"arrive": "fence.proxy.async; wgmma.fence.sync.aligned;"},
        "memory written by threads is read by a product without a barrier",
    ),
    "tile overwritten in flight": (
        {"leave": f"{NEXT} bar.sync 0; st.shared.b32 [%r4], %r10; wgmma.wait_group.sync.aligned 0;"},
        OVERWRITTEN,
    ),
    "tile overwritten in flight by a copy": (
        {"leave": f"{NEXT} bar.sync 0; cp.async.cg.shared.global [%r4], [%d0], 16; wgmma.wait_group.sync.aligned 0;"},
        OVERWRITTEN,
    ),
    "tile overwritten without a barrier after the wait": (
        {"leave": f"{LEAVE} st.shared.b32 [%r4], %r10;"},
        "memory read by another thread is written without a barrier",
    ),
    "copy into the tile not waited for": (
        {"arrive": f"bar.sync 0; cp.async.cg.shared.global [%r4], [%d0], 16; {ARRIVE}"},
        "memory that an asynchronous copy is still writing is read",
    ),
    "some lanes alone": (
        {"leave": f"{LEAVE} setp.lt.u32 %p2, %r0, 16; @%p2 wgmma.fence.sync.aligned;"},
        "not every lane of the warp takes part",
    ),
    "one warp alone": (
        {"between": "setp.gt.u32 %p2, %r0, 31; @%p2 bra OVER;", "leave": f"OVER: {LEAVE}"},
        "other warps of the warpgroup execute other products",
    ),
    "factor in registers overwritten in flight": (
        {
            "leave": "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
            f"{in_braces(0, 16)}, {in_braces(10, 4, 'r')}, %d11, 1, 1, 1, 0; mov.b32 %r10, 0; {LEAVE}"
        },
        USED_EARLY,
    ),
    "sums of another shape": (
        {
            "leave": "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
            f"{in_braces(2, 4)}, %d10, %d11, 1, 1, 1, 0, 0; {LEAVE}"
        },
        "the sums of a product in flight are those of another shape, or a factor",
    ),
    "lanes with descriptors of their own": (
        {
            "leave": "cvt.u64.u32 %d12, %r0; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
            f"{in_braces(0, 16)}, %d10, %d12, 1, 1, 1, 0, 0; {LEAVE}"
        },
        "the lanes of a warp name different matrices",
    ),
    "tile beyond the end": (
        {
            "leave": "mov.b64 %d12, 0x3fff; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
            f"{in_braces(0, 16)}, %d10, %d12, 1, 1, 1, 0, 0; {LEAVE}"
        },
        "a matrix reaches out of shared memory",
    ),
    "pattern between its multiples": (
        {
            "leave": "add.u64 %d12, %d11, 8; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
            f"{in_braces(0, 16)}, %d10, %d12, 1, 1, 1, 0, 0; {LEAVE}"
        },
        "a swizzled matrix begins at no multiple of 512 bytes",
    ),
}


def test_right_products_have_no_fault():
    assert abouts() == {"late": set(), "early": set()}
    fenced_by_readers = "bar.sync 0; fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;"
    assert abouts(arrive=fenced_by_readers) == {"late": set(), "early": set()}
    rewritten = f"{LEAVE} bar.sync 0; st.shared.b32 [%r4], %r10;"
    assert abouts(leave=rewritten) == {"late": set(), "early": set()}
    again = "mov.f32 %f0, 0f00000000; wgmma.fence.sync.aligned;"
    assert abouts(between=f"{LEAVE} {again}") == {"late": set(), "early": set()}


@pytest.mark.parametrize("rule", BROKEN)
def test_broken_rule_is_found(rule):
    parts, about = BROKEN[rule]

    for copies, found in abouts(**parts).items():
        assert about in found, copies


def test_sums_are_not_there_before_they_are_waited_for():
    image, _, text = two_products(leave=NEXT)

    assert not multiplied(text, image, 32, copies="late")[1].any()
    assert multiplied(text, image, 32, copies="early")[1].any()


def test_block_without_whole_warpgroups_is_found():
    image, _, text = two_products()
    report = launch(text, image.view(np.uint32), np.zeros(512, np.uint32), np.zeros(2048, np.float32), threads=96)

    assert "the block has no whole number of warpgroups, of 128 threads each" in {f.about for f in report.faults}


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ("sm_90a", "sm_90", r"the target sm_90 has no wgmma: sm_90a has"),
        ("m64n32k16", "m64n36k16", r"\(wgmma.mma_async.sync.aligned.m64n36k16.f32.bf16.bf16\)"),
        ("m64n32k16", "m64n32k8", r"\(wgmma.mma_async.sync.aligned.m64n32k8.f32.bf16.bf16\)"),
        ("f32.bf16.bf16", "f32.bf16.f16", r"\(wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.f16\)"),
        (", 1, 1, 0, 0;", ", 1, 2, 0, 0;", r"with the immediate operands \[1, 2, 0, 0\]"),
        (", 1, 1, 0, 0;", ", 1, 1;", r"with the immediate operands \[1, 1\]"),
        (", %f15}", "}", "with 15 registers of sums and 1 of the first factor"),
        ("wait_group.sync", "warpgroup_wait.sync", r"\(wgmma.warpgroup_wait.sync.aligned\)"),
    ],
)
def test_unknown_form_is_named(old, new, about):
    image, _, text = two_products()

    with pytest.raises(Unsupported, match=about):
        run_of(text.replace(old, new), image)


def by_triton(change=str, copies="late", blocks=(2, 2, 1)):
    """Return the report of a product as Triton compiles it, and how far its sums are from the right ones."""
    m, n, k = 80, 48, 112
    dtype = DTYPES["bf16"]
    a, b = (dtype.round(RANDOM.standard_normal(shape)) for shape in ((k, m), (k, n)))
    text = (Path(__file__).parent / "triton_product.ptx").read_text(encoding="utf-8")
    options = LaunchOptions(unwritten=(2,), copies=copies, seed=1, arguments=lambda at, _: [*at, m, n, k, 0, 0])
    arrays = [a, b, np.zeros((m, n), np.float32)]
    report = run(parse(change(text)), Grid(blocks, (THREADS, 1, 1), 18432), arrays, options)
    return report, np.abs(report.arrays[2] - dtype.widen(a).astype(np.float64).T @ dtype.widen(b)).max()


@pytest.mark.parametrize("copies", ["late", "early"])
def test_product_that_another_compiler_made_is_right_and_without_a_fault(copies):
    """Triton's layouts, descriptors and fences, which run on hardware, are what they are taken for here."""
    report, error = by_triton(copies=copies)

    assert report.faults == ()
    assert report.executed["wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16"] == 4 * 4 * 4 * 2
    assert error < 1e-4


@pytest.mark.long
@pytest.mark.parametrize(
    ("instruction", "count"),
    [
        (r"bar\.sync\s+0;", 4),
        (r"wgmma\.fence\S+;", 1),
        (r"fence\.proxy\S+;", 1),
        (r"wgmma\.commit_group\S+;", 1),
        (r"wgmma\.wait_group\S+ \d;", 2),
        (r"cp\.async\.wait_group\s+\d;", 2),
    ],
)
def test_whatever_that_compiler_lets_wait_or_fence_is_needed(instruction, count):
    def without(index):
        return lambda text: "".join(
            part for i, part in enumerate(re.split(f"({instruction})", text)) if i != 2 * index + 1
        )

    for index in range(count):
        assert by_triton(without(index), blocks=(1, 1, 1))[0].faults


def test_base_offset_is_refused():
    image, _, text = two_products()
    with pytest.raises(Unsupported, match="a matrix descriptor with the base offset 1: 0 is known here"):
        run_of(text.replace("wgmma.mma_async", "or.b64 %d11, %d11, 0x2000000000000; wgmma.mma_async"), image)
