"""Files of users read: what PTX and cubins say of their kernels, and what is refused with which words."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.core.errors import GpuExploreError, InvalidInput, TooLarge
from gpuexplore.kernels.files import MOST_BYTES, kernel_chosen, read_cubin, read_kernel_file, read_ptx
from gpuexplore.kernels.files.machine_code import check_fits, check_target
from tests.kernels.files.kept import CUBIN, EVERY_PTX, MATMUL, NUMBA, SAXPY, TRITON, TWO

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def test_ptx_names_its_kernels_and_their_blocks():
    two, triton = read_kernel_file(TWO.read_bytes()), read_kernel_file(TRITON.read_bytes())

    assert [(kernel.name, kernel.block) for kernel in two.kernels] == [(MATMUL, (256, 1, 1)), ("reversed", None)]
    assert (two.version, two.target, two.compute_capability) == ("9.5", "sm_80", "8.0")
    assert [kernel.has_open_array for kernel in two.kernels] == [False, True]
    assert two.kernels[0].parameters == ("u64", "u64", "u64", "u32")
    assert [(kernel.name, kernel.block) for kernel in triton.kernels] == [("add", (128,))]
    assert (triton.version, triton.target, triton.suffix) == ("9.4", "sm_90a", "a")


def test_every_kept_ptx_is_read():
    names = [read_ptx(path.read_text()).kernels[0].name for path in EVERY_PTX]

    assert names[:3] == ["saxpy", MATMUL, "add"]
    assert "scale" in names[3]
    assert read_ptx(SAXPY.read_text()).kernels[0].block is None
    assert not read_ptx(NUMBA.read_text()).kernels[0].has_open_array


def test_what_a_comment_says_does_not_count():
    text = f"{HEAD}// .entry no(\n/* .entry neither( */ .visible .entry k() .maxntid 64, 2 // .reqntid 1\n{{ ret; }}\n"

    assert [(kernel.name, kernel.block) for kernel in read_ptx(text).kernels] == [("k", (64, 2))]


def test_shared_memory_of_a_function_counts_for_every_kernel():
    array = ".extern .shared .align 16 .b8 open[];\n"
    kernels = ".func f() { mov.u32 %r1, open; ret; }\n.entry a() { ret; }\n.entry b(.param .f32 p) { ret; }\n"

    assert [kernel.has_open_array for kernel in read_ptx(HEAD + array + kernels).kernels] == [True, True]
    assert [kernel.has_open_array for kernel in read_ptx(HEAD + kernels).kernels] == [False, False]


@pytest.mark.parametrize(
    ("head", "registers"),
    [
        (".maxntid 384 .minnctapersm 1", 168),
        (".reqntid 128, 1, 1 .minnctapersm 3", 168),
        (".maxntid 256 .minnctapersm 1", 232),  # no more than the most that is asked for
        (".maxntid 384 .maxnreg 152", 152),
        (".maxntid 384", None),
    ],
)
def test_registers_at_launch_of_a_kernel_that_reallocates_are_those_of_ptxas(head, registers):
    body = "setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.inc.sync.aligned.u32 232; ret;"
    (kernel,) = read_ptx(f"{HEAD}.entry k() {head}\n{{ {body} }}\n").kernels

    assert (kernel.reallocated, kernel.launch_registers) == ((40, 232), registers)


def test_products_of_tensor_memory_are_tf32_where_all_say_so():
    product = "tcgen05.mma.cta_group::1.kind::{} [t], a, b, i, p;"
    kernels = (f".entry {name}() {{ {product.format(name)} ret; }}\n" for name in ("tf32", "f16"))

    assert [kernel.is_tf32 for kernel in read_ptx(HEAD + "".join(kernels)).kernels] == [True, False]


def test_needed_threads_go_before_the_most():
    text = f"{HEAD}.entry k(.param .u64 p)\n.maxntid 256\n.reqntid 128, 1, 1\n.minnctapersm 2\n{{ ret; }}\n"

    assert read_ptx(text).kernels[0].block == (128, 1, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "this file is empty"),
        (b"  \n\0"[:3], "this file is empty"),
        (b"hello world", r"this is not PTX: it has no line with \.version"),
        (b".version 8.0\n", r"this is not PTX: it has no line with \.target sm_"),
        (HEAD.encode(), r"PTX without a kernel: it has no line with \.entry"),
        (b"\xff\xfe\x00\x01", "neither PTX, which is text, nor a cubin"),
        (b"\x50\xed\x55\xba" + bytes(100), "this is a fatbin: extract a cubin"),
        (b"\x7fELF", "this is not a cubin: it is not an ELF file"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\0" + bytes(60), "is for machine 62, not for an NVIDIA GPU"),
    ],
)
def test_what_holds_no_kernel_is_refused_with_what_is_looked_for(content, said):
    with pytest.raises(InvalidInput, match=said):
        read_kernel_file(content)


def test_a_file_too_large_is_refused_with_the_limit():
    with pytest.raises(TooLarge, match=r"more than 4\.00 MiB: the limit is 4,194,304 bytes"):
        read_kernel_file(b" " * (MOST_BYTES + 1))


@pytest.mark.parametrize("filling", ["// c\n", "/*", ".extern .shared .b8 a", ".extern .shared "])
def test_a_file_of_the_largest_size_is_read_whatever_fills_it(filling):
    """Where a pattern looks at the same text again and again, this takes hours."""
    kernel = f"{HEAD}.entry k() {{ ret; }}\n"
    before = filling * ((MOST_BYTES - len(kernel)) // len(filling)) if filling.endswith("\n") else ""
    after = "" if before else filling * ((MOST_BYTES - len(kernel)) // len(filling))

    assert [each.name for each in read_kernel_file((before + kernel + after).encode()).kernels] == ["k"]


def test_cubin_tells_registers_memory_and_block():
    cubin = read_cubin(CUBIN.read_bytes())
    (kernel,) = cubin.kernels

    assert (cubin.compute_capability, cubin.target) == ("8.0", "sm_80")
    assert (kernel.name, kernel.registers_per_thread, kernel.block) == ("add", 28, (128, 1, 1))
    assert (kernel.shared_bytes, kernel.local_bytes, len(kernel.code) % 16) == (0, 0, 0)


@given(st.integers(0, 3879), st.integers(0, 255))
def test_a_damaged_cubin_is_read_or_refused_and_nothing_else(offset, value):
    content = bytearray(CUBIN.read_bytes())
    content[offset] = value
    try:
        kernels = read_kernel_file(bytes(content)).kernels
    except GpuExploreError:
        kernels = None

    assert kernels is None or len(kernels) == 1


@given(st.integers(0, 3711))
def test_a_cubin_cut_off_before_the_end_of_its_tables_is_refused(length):
    with pytest.raises(InvalidInput):
        read_kernel_file(CUBIN.read_bytes()[:length])


def cubin_of_sections(number, size):
    """Return a cubin with that many more sections, each of them `size` bytes from its start."""
    content = bytearray(CUBIN.read_bytes())
    (start,), (count,) = struct.unpack_from("<Q", content, 40), struct.unpack_from("<H", content, 60)
    table = content[start : start + 64 * count]
    more = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 0, size, 0, 0, 1, 0)
    struct.pack_into("<Q", content, 40, len(content))
    struct.pack_into("<H", content, 60, count + number)
    return bytes(content + table + more * number)


def test_sections_that_overlap_are_refused_before_they_are_copied():
    content = cubin_of_sections(60_000, 4_000_000)
    assert read_cubin(cubin_of_sections(10, 0)).kernels == read_cubin(CUBIN.read_bytes()).kernels

    tracemalloc.start()
    with pytest.raises(InvalidInput, match="damaged"):
        read_cubin(content)
    assert tracemalloc.get_traced_memory()[1] < 10 * len(content)
    tracemalloc.stop()


def test_a_cubin_with_tables_outside_the_file_is_a_sentence():
    content = bytearray(CUBIN.read_bytes())
    content[40:48] = struct.pack("<Q", 2**40)

    with pytest.raises(InvalidInput, match="cut off or damaged"):
        read_cubin(bytes(content))


def test_the_only_kernel_needs_no_name_and_a_part_of_one_will_do():
    assert kernel_chosen(["add"], None) == "add"
    assert kernel_chosen([MATMUL, "reversed"], "matmul") == MATMUL
    assert kernel_chosen(["add", "add_all"], "add") == "add"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (None, "has 2 kernels, so name one: add_a, add_b"),
        ("multiply", "kernel 'multiply': expected add_a, add_b, or a part"),
        ("add", "kernel 'add': expected add_a, add_b"),
        ("", "kernel '': expected add_a"),
    ],
)
def test_no_kernel_or_several_are_a_sentence_that_lists_them(wanted, said):
    with pytest.raises(InvalidInput, match=said):
        kernel_chosen(["add_a", "add_b"], wanted)


def test_a_long_list_of_long_names_is_cut():
    with pytest.raises(InvalidInput) as caught:
        kernel_chosen([f"{'n' * 200}{i}" for i in range(50)], None)

    assert "and 30 more" in str(caught.value)
    assert len(str(caught.value)) < 2500


@pytest.mark.parametrize(
    ("target", "gpu", "fits"),
    [
        ("sm_80", "9.0", True),
        ("sm_80", "12.0", True),
        ("sm_80", "7.5", False),
        ("sm_90a", "9.0", True),
        ("sm_90a", "10.0", False),
        ("sm_100f", "10.3", True),
        ("sm_100f", "12.0", False),
        ("sm_120", "10.3", False),
    ],
)
def test_ptx_fits_later_gpus_unless_its_target_names_one(target, gpu, fits):
    module = read_ptx(f".version 9.0\n.target {target}\n.entry k() {{ ret; }}")
    if fits:
        assert check_target(module, gpu) is None
    else:
        with pytest.raises(InvalidInput, match=f"this PTX is for {target}, but the GPU has compute capability {gpu}"):
            check_target(module, gpu)


@pytest.mark.parametrize("target", ["sm_999", "sm_92"])
def test_ptx_for_a_target_that_no_gpu_has_names_those_that_are(target):
    module = read_ptx(f".version 9.0\n.target {target}\n.entry k() {{ ret; }}")

    with pytest.raises(InvalidInput, match=rf"for {target}, which no known GPU has: .* 9\.0, .*12\.1$"):
        check_target(module, "9.0")


@pytest.mark.parametrize(("gpu", "fits"), [("8.0", True), ("8.9", True), ("9.0", False), ("7.5", False)])
def test_a_cubin_fits_gpus_of_its_major_number_from_its_minor_one_on(gpu, fits):
    cubin = read_cubin(CUBIN.read_bytes())
    if fits:
        assert check_fits(cubin, gpu) is None
    else:
        with pytest.raises(InvalidInput, match=rf"for compute capability 8\.0, but the GPU has {gpu}"):
            check_fits(cubin, gpu)
