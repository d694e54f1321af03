"""Functions that tests call in the process that reads untrusted files: it imports little."""

import os

from gpuexplore.core.errors import Unsupported
from gpuexplore.jobs import reading


def length_of(content):
    os.write(1, b"what is printed is no answer")
    return len(content), os.getpid(), os.nice(0)


def refusing(_):
    raise Unsupported("said by the file")


def greedy(_):
    return bytes(2 * reading.MEMORY_BYTES)


def endless(_):
    while True:
        pass


def broken(_):
    raise ZeroDivisionError
