"""Random expressions, and what torch makes of them: the oracle of the tensors."""

import random

import torch

LENGTHS = (1, 1, 2, 2, 3, 4, 5)


def random_chain(seed):
    """Return the shape of a first tensor, up to five steps of which the last may be impossible, and what is written."""
    draw = random.Random(seed)
    shape = [draw.choice(LENGTHS) for _ in range(draw.randint(1, 4))]
    if draw.random() < 0.05:
        shape[draw.randrange(len(shape))] = 0
    steps, seen = [], torch.zeros(shape)
    for _ in range(draw.randint(1, 5)):
        steps.append(draw.choice(STEPS)(draw, seen))
        seen = run_step(seen, steps[-1])
        if isinstance(seen, Exception) or seen.dim() > 6 or seen.numel() > 250:
            break
    is_written = isinstance(seen, torch.Tensor) and steps[-1].endswith("]") and draw.random() < 0.5
    return shape, steps, draw.randint(100, 999) if is_written else None


def run_step(seen, step):
    """Return what torch makes of a step that this module made itself, or the exception where torch refuses it."""
    try:
        return eval(f"seen{step}", {"seen": seen})
    except (RuntimeError, IndexError, ValueError) as error:
        return error


def facts(seen, first):
    """Return what is compared of a tensor of torch; storages are the same where their memory is."""
    shares = seen.untyped_storage()._cdata == first.untyped_storage()._cdata
    return tuple(seen.shape), seen.stride(), seen.storage_offset(), seen.is_contiguous(), shares


def _lengths(draw, seen):
    """Return a shape of as many elements, or now and then of others."""
    count, found = seen.numel(), []
    while count > 1 and len(found) < 4:
        factor = draw.choice([length for length in range(1, count + 1) if count % length == 0])
        found.append(factor)
        count //= factor
    found += [count] if count != 1 or not found else []
    found += [1] * draw.choice((0, 0, 0, 1))
    draw.shuffle(found)
    if draw.random() < 0.15:
        found[draw.randrange(len(found))] = draw.choice((-1, -1, 5))
    return ", ".join(map(str, found))


def _axis(draw, seen, more=0):
    count = max(1, seen.dim() + more)
    return draw.randint(-count, count - 1) if draw.random() < 0.97 else count


def _item(draw, length):
    def end():
        return draw.choice(("", "", str(draw.randint(-length - 1, length + 1))))

    kind = draw.random()
    if kind < 0.3:
        return str(draw.randint(-length, length - 1) if length and draw.random() < 0.97 else length)
    if kind < 0.9:
        return f"{end()}:{end()}" + draw.choice(("", "", ":2", ":3", ":"))
    return "None"


def _index(draw, seen):
    taken = [_item(draw, length) for length in seen.shape[: draw.randint(0, seen.dim())]]
    if draw.random() < 0.2 or not taken:
        taken.insert(draw.randint(0, len(taken)), "...")
    return f"[{', '.join(taken)}]"


def _expand(draw, seen):
    lengths = [
        draw.choice((2, 3, 1)) if length == 1 else draw.choice((length, -1, -1, length)) for length in seen.shape
    ]
    if draw.random() < 0.05 and lengths:
        lengths[0] += 1
    new = [draw.choice((1, 2)) for _ in range(draw.choice((0, 0, 1)))]
    return f".{draw.choice(('expand', 'broadcast_to'))}({_tuple(new + lengths)})"


def _tuple(lengths):
    return f"({', '.join(map(str, lengths))}{',' if len(lengths) == 1 else ''})"


def _permute(draw, seen):
    order = draw.sample(range(seen.dim()), seen.dim())
    return f".permute({_tuple(order)})"


def _narrow(draw, seen):
    axis = _axis(draw, seen)
    length = seen.shape[axis] if -seen.dim() <= axis < seen.dim() else 1
    start = draw.randint(0, length)
    return f".narrow({axis}, {start}, {draw.randint(0, max(0, length - start))})"


STEPS = (
    *[_index] * 3,
    *[lambda draw, seen: f".view({_lengths(draw, seen)})"] * 3,
    *[lambda draw, seen: f".reshape({_lengths(draw, seen)})"] * 2,
    *[lambda draw, seen: f".transpose({_axis(draw, seen)}, {_axis(draw, seen)})"] * 3,
    *[_permute] * 2,
    _expand,
    _expand,
    _narrow,
    lambda draw, seen: ".t()",
    lambda draw, seen: ".contiguous()",
    lambda draw, seen: ".clone()",
    lambda draw, seen: f".unsqueeze({_axis(draw, seen, 1)})",
    lambda draw, seen: f".squeeze({draw.choice(('', _axis(draw, seen)))})",
    lambda draw, seen: f".flatten({draw.choice(('', f'{_axis(draw, seen)}, {_axis(draw, seen)}'))})",
    lambda draw, seen: f".select({_axis(draw, seen)}, {draw.randint(0, 2)})",
)
