"""Every plant, with what has to become of it: the table that `python -m benchmarks.evil` goes through.

`register` puts the plants beside the real implementations, in a process of tests or of that command.
"""

import numpy as np

from gpuexplore.core.model import Shape, Status
from tests.measure.evil import ending, lazy, meddling, plant, wrong
from tests.measure.evil.plant import HANGING_S, Plant

OPERATION = "vector_add"
SQUARE = {"operation": "matmul", "shape": Shape.of(m=256, k=256, n=256)}
MILLION = Shape.of(n=2**20)
OK, INCORRECT, ERROR, CRASHED = Status.OK, Status.INCORRECT, Status.ERROR, Status.CRASHED
TIMEOUT, OUT_OF_MEMORY, SKIPPED = Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.SKIPPED


def fine(inputs, out, dtype):
    """Add, as the real ones do."""
    return lambda: np.add(*inputs, out=out)


PLANTS = (
    Plant(fine, (OK,)),
    # wrong whenever they are called
    Plant(wrong.wrong),
    Plant(wrong.partial),
    Plant(wrong.first_rows),
    Plant(wrong.stale_tail),
    Plant(wrong.zeros),
    Plant(wrong.nan),
    Plant(wrong.single_element, shape=MILLION),
    Plant(wrong.sixty_one, shape=MILLION, dtype="bf16"),
    Plant(wrong.input_as_output),
    Plant(wrong.scaled),
    Plant(wrong.swapped),
    Plant(wrong.swapped_rows, **SQUARE),
    Plant(wrong.transposed, **SQUARE),
    Plant(wrong.returning),
    Plant(wrong.retyped),
    Plant(wrong.reshaped),
    Plant(wrong.narrow),
    Plant(wrong.bf16_product, **SQUARE),
    Plant(wrong.fp16_sums, **SQUARE),
    Plant(wrong.changing),
    Plant(wrong.accumulating),
    # right when they are looked at
    Plant(lazy.once),
    Plant(lazy.alternating),
    Plant(lazy.seldom),
    Plant(lazy.retiring),
    Plant(lazy.brief),
    Plant(lazy.spoiled),
    Plant(lazy.asynchronous),
    Plant(lazy.writing_late),
    Plant(lazy.keeping),
    Plant(lazy.precomputing),
    Plant(lazy.skipping),
    Plant(lazy.poison_aware),
    Plant(lazy.alert),
    Plant(lazy.caller_aware),
    Plant(lazy.stack_aware),
    Plant(lazy.half_stack_aware, shape=Shape.of(n=2**22)),
    Plant(lazy.memorizing),
    Plant(lazy.hashing),
    Plant(lazy.fingerprinting),
    # change their process
    Plant(meddling.clock),
    Plant(meddling.norm),
    Plant(meddling.finite),
    Plant(meddling.check_rewritten),
    Plant(meddling.checks_replaced),
    Plant(meddling.scales, **SQUARE),
    Plant(meddling.median),
    Plant(meddling.guard_off),
    Plant(meddling.swapped_names),
    Plant(meddling.raising_arithmetic),
    Plant(meddling.thread_counts, beside=("torch",)),
    Plant(meddling.blas_thread, **SQUARE, beside=("numpy",)),
    Plant(meddling.without_onednn, **SQUARE, beside=("torch",)),
    Plant(meddling.slow_product, **SQUARE, beside=("torch",)),
    Plant(meddling.foreseen, beside=("numpy",)),
    Plant(meddling.rounding_up, beside=("numpy",)),
    Plant(meddling.flushing, beside=("torch",)),
    Plant(meddling.edited_samples, beside=("numpy",)),
    Plant(meddling.slowed_timer, beside=("numpy",)),
    Plant(meddling.environment),
    Plant(meddling.cores),
    Plant(meddling.collecting),
    Plant(meddling.seeding, (OK,)),
    Plant(meddling.moving),
    Plant(meddling.signals),
    Plant(meddling.closing, (OK, INCORRECT)),
    Plant(meddling.closing_all, (OK, ERROR, CRASHED)),
    Plant(meddling.beyond, (OK, INCORRECT, CRASHED), damages=True),  # no room is left behind arrays
    Plant(meddling.neighbour, (OK, INCORRECT), damages=True),
    Plant(meddling.busy_thread, (OK, TIMEOUT), "contended", most_s=HANGING_S, damages=True),  # it holds the interpreter
    Plant(meddling.dozing_thread, (OK,)),
    Plant(meddling.child, (OK, TIMEOUT), "contended", most_s=HANGING_S),
    Plant(meddling.twin, (OK, INCORRECT, CRASHED, ERROR)),
    # raise, end, hang, take memory, print
    Plant(ending.raising, (ERROR,)),
    Plant(ending.raising_at_20, (ERROR,)),
    Plant(ending.unbuildable, (ERROR,)),
    Plant(ending.tiring, (ERROR,)),
    Plant(ending.straying, (ERROR,)),
    Plant(ending.unreadable, (ERROR,)),
    Plant(ending.speechless, (ERROR,)),
    Plant(ending.interrupting, (ERROR, CRASHED)),
    Plant(ending.base_exception, (ERROR, CRASHED)),
    Plant(ending.stalling, (TIMEOUT,), most_s=HANGING_S),
    Plant(ending.endless, (TIMEOUT,), most_s=HANGING_S),
    Plant(ending.endless_build, (TIMEOUT,), most_s=HANGING_S),
    Plant(ending.holding, (TIMEOUT,), most_s=HANGING_S),
    Plant(ending.slow, (OK, SKIPPED), shape=MILLION),
    Plant(ending.sleeping, (OK,)),
    Plant(ending.crashing, (CRASHED,)),
    Plant(ending.segfault, (CRASHED,)),
    Plant(ending.terminated, (CRASHED,)),
    Plant(ending.leaving, (CRASHED,)),
    Plant(ending.leaving_at_one_element, (OK,)),
    Plant(ending.endless_at_one_element, (OK,), most_s=HANGING_S),
    Plant(ending.exit_3, (CRASHED,)),
    Plant(ending.sys_exit, (ERROR, CRASHED)),
    Plant(ending.out_of_memory, (OUT_OF_MEMORY,)),
    Plant(ending.greedy, (OUT_OF_MEMORY,)),
    Plant(ending.leaking, (OUT_OF_MEMORY, OK), "leaks", damages=True),
    Plant(ending.growing, (OK,), "leaks"),
    Plant(ending.growing_slowly, (OK,), "leaks"),
    Plant(ending.printing, (OK,), "truncated"),
    Plant(ending.chatting, (OK,), "truncated"),
    Plant(ending.flooding, (OK,), "truncated"),
)
BUILDERS = {found.name: found.build for found in PLANTS}


def register(setattr_, setitem):
    """Add every plant to its operation; see `plant.register`."""
    plant.register(PLANTS, setattr_, setitem)
