"""`python -m gpuexplore` is the command `gpuexplore`.

Until the command runs, and after it, Ctrl-C ends the process at once, without Python's words: importing takes a
second, and a library that is interrupted in the middle of it fills the screen.
"""

import gc
import signal
import sys

from gpuexplore.core.pools import shorten_spinning

HANDLER = signal.getsignal(signal.SIGINT)
SILENT = signal.SIG_DFL if HANDLER is signal.default_int_handler else signal.SIG_IGN  # as in a shell's background
EXIT_INTERRUPTED = 128 + signal.SIGINT  # as a shell has it


def start() -> int:
    """Run the command that this process's arguments name; return its exit code."""
    signal.signal(signal.SIGINT, SILENT)
    shorten_spinning()
    gc.set_threshold(50_000)  # most of what a command makes stays: looking for garbage was a tenth of its time
    from gpuexplore.cli import main

    try:
        signal.signal(signal.SIGINT, HANDLER)
        return main()
    except KeyboardInterrupt:  # a second one, while the first was answered
        return EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, SILENT)


if __name__ == "__main__":
    sys.exit(start())
