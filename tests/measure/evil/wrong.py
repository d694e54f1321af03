"""Plants whose output is wrong whenever they are called."""

import numpy as np

ML_BF16_MASK = np.uint32(0xFFFF0000)


def wrong(inputs, out, dtype):
    """Subtract."""
    return lambda: np.subtract(*inputs, out=out)


def partial(inputs, out, dtype):
    """Leave the last element out, as a grid does that is rounded down."""
    a, b = inputs
    return lambda: np.add(a[:-1], b[:-1], out=out[:-1])


def first_rows(inputs, out, dtype):
    """Compute the first half, and write zeros into the rest."""
    a, b = inputs
    half = out.size // 2

    def run():
        out[half:] = 0
        np.add(a[:half], b[:half], out=out[:half])

    return run


def stale_tail(inputs, out, dtype):
    """Compute all but the last block of 256, which repeats the block before."""
    a, b = inputs

    def run():
        np.add(a[:-256], b[:-256], out=out[:-256])
        out[-256:] = out[-512:-256]

    return run


def zeros(inputs, out, dtype):
    """Write zeros: right on zeros only, which may be what it is timed on."""
    return lambda: out.fill(0)


def nan(inputs, out, dtype):
    """Write NaN."""
    return lambda: out.fill(np.nan)


def single_element(inputs, out, dtype):
    """Be wrong in one element, by one."""

    def run():
        np.add(*inputs, out=out)
        out[out.size // 3] += 1

    return run


def sixty_one(inputs, out, dtype):
    """Write zeros into 61 elements of a million."""

    def run():
        np.add(*inputs, out=out)
        out[: 61 * 1000 : 1000] = 0

    return run


def input_as_output(inputs, out, dtype):
    """Copy an input."""
    return lambda: np.copyto(out, inputs[0])


def scaled(inputs, out, dtype):
    """Be a thousandth too large."""

    def run():
        np.add(*inputs, out=out)
        np.multiply(out, 1.001, out=out)

    return run


def swapped(inputs, out, dtype):
    """Swap two elements."""

    def run():
        np.add(*inputs, out=out)
        out[[3, 5]] = out[[5, 3]]

    return run


def swapped_rows(inputs, out, dtype):
    """Swap two rows of a product."""

    def run():
        np.matmul(*inputs, out=out)
        out[[3, 5]] = out[[5, 3]]

    return run


def transposed(inputs, out, dtype):
    """Write the transposed product."""
    a, b = inputs
    return lambda: np.copyto(out, np.matmul(a, b).T)


def returning(inputs, out, dtype):
    """Return the result in float64, and leave the output alone."""
    return lambda: np.add(*inputs, dtype=np.float64)


def retyped(inputs, out, dtype):
    """Write the result as whole numbers into the memory of the output."""
    return lambda: np.copyto(out.view(np.int32), np.add(*inputs), casting="unsafe")


def reshaped(inputs, out, dtype):
    """Write a result of another shape: the sum of everything, everywhere."""
    return lambda: np.copyto(out, np.add(*inputs).sum())


def narrow(inputs, out, dtype):
    """Add in fp16 what is asked for in fp32."""
    return lambda: np.add(*(array.astype(np.float16) for array in inputs), out=out, casting="unsafe")


def bf16_product(inputs, out, dtype):
    """Multiply in bf16 what is asked for in fp32."""

    def run():
        np.matmul(*((array.view(np.uint32) & ML_BF16_MASK).view(np.float32) for array in inputs), out=out)

    return run


def fp16_sums(inputs, out, dtype):
    """Add the terms of a product in fp16."""
    a, b = inputs

    def run():
        total = np.zeros(out.shape, np.float16)
        for start in range(0, a.shape[1], 16):
            total += np.matmul(a[:, start : start + 16], b[start : start + 16]).astype(np.float16)
        np.copyto(out, total)

    return run


def changing(inputs, out, dtype):
    """Leave something else in its inputs."""

    def run():
        np.add(*inputs, out=out)
        inputs[1][0] = 1.5

    return run


def accumulating(inputs, out, dtype):
    """Use an input as the place of the output too."""

    def run():
        np.add(*inputs, out=inputs[0])
        np.copyto(out, inputs[0])

    return run
