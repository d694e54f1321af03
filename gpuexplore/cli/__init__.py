"""The command line: one module a command, of the core or of a feature, imported only when it is asked for.

`record` must run on a bare GPU machine, so nothing here imports streamlit, sqlalchemy or pandas, and the parser is
the standard library's. A command is a file `<name>_command.py` with `add_arguments` and `execute`, and a line of the
table below or of its feature; what several print is in `output.py`.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType

import gpuexplore
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE, give_up_unwritable, prepare_streams, say
from gpuexplore.core.errors import GpuExploreError, not_installed
from gpuexplore.measure import prepare_process
from gpuexplore.registry import features

CORE: Mapping[str, str] = {
    "run": "measure an operation and print what it means",
    "runs": "earlier runs: list, show, name, tag, delete and export",
    "import": "runs from files of other machines, kept apart from what was measured here",
    "compare": "two runs side by side: what got faster or slower, and what is inconclusive",
    "repeatability": "how much times vary from process to process on this machine",
    "devices": "the devices of this machine, and their peaks",
    "list": "operations, implementations and dtypes, and which can be combined",
    "specs": "peaks of an accelerator by name, or of all of them",
    "predict": "how long an operation would take on a local or hypothetical GPU, and how certain that is",
    "calibrate": "measure a device for a minute: what that changes in predictions, and how it differs from its kind",
    "record": "measure and write a file with provenance; needs numpy, numba and torch only",
    "app": "serve the web app",
}


def _commands() -> dict[str, str]:
    """Return the line of help of every command, those of a feature where it wants them."""
    found = list(CORE.items())
    for feature in features():
        start = [name for name, _ in found].index(feature.after) + 1 if feature.after else len(found)
        found[start:start] = feature.commands.items()
    return dict(found)


COMMANDS = _commands()


def main(arguments: Sequence[str] | None = None, execute: Callable[[argparse.Namespace], int] | None = None) -> int:
    """Run one command.

    Args:
        arguments: its words; None for those of this process.
        execute: what does it once its arguments are understood; None for the command's own module.

    Returns:
        0 when all is OK or skipped with a reason, 1 when a case failed, 2 for unusable arguments.
    """
    prepare_streams()
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments), execute or execute_command)
    except (GpuExploreError, ImportError, OSError, KeyboardInterrupt) as error:
        return _explained(error)
    except RuntimeError as error:  # what Python makes of an interrupt while a class is defined
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return _explained(error.__cause__)
    finally:
        give_up_unwritable()


def execute_command(chosen: argparse.Namespace) -> int:
    """Do what the chosen command's module does, and return the exit code."""
    return _module_of(chosen.command).execute(chosen)


def _run(words: Sequence[str], execute: Callable[[argparse.Namespace], int]) -> int:
    prepare_process()
    if words[:1] in (["runs"], ["devices"], ["room"]) and words[1:2] == ["list"]:  # what each does without an action
        words = [words[0], *words[2:]]
    parser = _parser(words[0] if words else "")
    for word in words:
        if word.startswith("--") and word.endswith("=--"):  # argparse makes an empty list of it
            parser.error(f"argument {word.removesuffix('=--')}: invalid value: '--': expected a value")
    try:
        return execute(parser.parse_args(_sizes_joined(words)))
    finally:
        sys.stdout.flush()  # here, where it can still be reported that it was not written


def _sizes_joined(words: Sequence[str]) -> list[str]:
    """Return words with what follows ``--size 256`` as part of it: 512 and 1k, but no operation and no option."""
    joined: list[str] = []
    is_size = False
    for word in words:
        if is_size and re.fullmatch(r"[0-9][0-9_]*[kKmM]?[iI]?(:[\w+:]+)?[,;]?", word):
            joined[-1] += f",{word}"
            continue
        is_size = word.startswith("--size=") or joined[-1:] == ["--size"]
        joined.append(word)
    return joined


def _explained(error: BaseException) -> int:
    """Say in a line why the command ends, and return its exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has seen enough
        return EXIT_OK
    if isinstance(error, KeyboardInterrupt):
        say("gpuexplore: interrupted")
        return EXIT_FAILED
    say(f"gpuexplore: {not_installed(error) if isinstance(error, ImportError) else error}")
    return EXIT_UNUSABLE if isinstance(error, GpuExploreError) else EXIT_FAILED


def _parser(wanted: str) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of the wanted command only: the others are not loaded."""
    parser = argparse.ArgumentParser(prog="gpuexplore", description="How fast a computation is, and why.")
    parser.add_argument("--version", action="version", version=gpuexplore.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about)
        if name == wanted:
            _module_of(name).add_arguments(command)
    return parser


def _module_of(name: str) -> ModuleType:
    """Return the module of one command, loaded.

    Its `add_arguments` declares the command's arguments on a parser, and its `execute` does what they ask for and
    returns the exit code.
    """
    home = next((f"features.{feature.name}" for feature in features() if name in feature.commands), "cli")
    return import_module(f"gpuexplore.{home}.{name}_command")
