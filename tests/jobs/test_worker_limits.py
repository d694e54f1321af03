"""What a kernel makes of the limits of its process ends with its group."""

import resource

from gpuexplore.jobs.worker import LIMITS, _limits_put_back


def test_limits_are_put_back_after_a_group():
    before = {which: resource.getrlimit(which) for which in LIMITS}
    soft, hard = before[resource.RLIMIT_NOFILE]

    with _limits_put_back():
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))

    assert {which: resource.getrlimit(which) for which in LIMITS} == before
