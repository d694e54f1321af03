"""The magic `%gpuexplore`: a line is a command, as in a shell; what `run` measures is returned, and drawn."""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gpuexplore.api import Outcome
from gpuexplore.cli import EXIT_OK, execute_command, main, run_command
from gpuexplore.cli.streams import say
from gpuexplore.core.errors import InvalidInput

NAME = "gpuexplore"
HOLDING: Mapping[str, str] = {  # commands that would keep the cell until they are interrupted, and what to do instead
    "app": "in a notebook: from gpuexplore.notebook import show_app; show_app()",
    "worker": "in a shell, where it may stay",
}


def register(shell: Any) -> None:
    """Add the magic to a shell of IPython."""
    shell.register_magic_function(carry_out, magic_kind="line", magic_name=NAME)


def carry_out(line: str) -> Outcome | None:
    """Do what `gpuexplore` does in a shell with the same words, e.g. `%gpuexplore run matmul --size 512 --dtype fp32`.

    `run` returns what `gpuexplore.run` does, measured in processes of its own: `out = %gpuexplore run matmul`. With
    `--json` it prints, as every other command. What cannot be done is said in a sentence, without a traceback.
    """
    outcomes: list[Outcome] = []

    def execute(arguments: argparse.Namespace) -> int:
        if arguments.command in HOLDING:
            raise InvalidInput.of("command", arguments.command, HOLDING[arguments.command])
        if arguments.command != "run" or arguments.json:
            return execute_command(arguments)
        arguments.is_shown = False
        outcomes.append(Outcome(*run_command.carry_out(arguments), arguments.baseline, arguments.peak))
        return EXIT_OK

    try:
        main(_words(line), execute)
    except InvalidInput as error:
        say(f"gpuexplore: {error}")
    except SystemExit:  # argparse has said why, or has helped
        return None
    return outcomes[0] if outcomes else None


def _words(line: str) -> Sequence[str]:
    """Return the words of a line, as a shell reads them.

    Raises:
        InvalidInput: a quote is left open, or nothing follows a backslash.
    """
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InvalidInput.of("line", line, f"words as in a shell; this one: {error}") from error
