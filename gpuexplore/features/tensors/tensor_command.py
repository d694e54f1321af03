"""`gpuexplore tensor`: an expression of views, copies and writes, step by step."""

import argparse
from typing import Any

from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json
from gpuexplore.features.tensors.analysis import Chain
from gpuexplore.features.tensors.analysis.evaluate import evaluate, words, write_sentences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tensor`."""
    declare(
        parser,
        {
            "expression EXPRESSION": 'like "x = 4x4; y = x.t(); x[0] = 100"',
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print each step with the tensor it gives, and what writes change."""
    chain = evaluate(arguments.expression)
    if arguments.json:
        values = chain.values_of(chain.result)
        print_json(
            {
                "expression": chain.expression,
                "steps": _steps(chain, list),
                "is_view": chain.is_view,
                "values": None if values is None else list(values),
                "writes": [
                    {"text": write.text, "changes": list(write_sentences(chain, write))} for write in chain.writes
                ],
            }
        )
        return EXIT_OK
    heading = ("step", "is", "storage", "shape", "strides", "offset", "contiguous")
    print_columns([heading, *(tuple(map(str, step.values())) for step in _steps(chain, words))])
    for write in chain.writes:
        print(f"\n{write.text}", *write_sentences(chain, write), sep="\n  ")
    return EXIT_OK


def _steps(chain: Chain, lengths: Any) -> list[dict[str, Any]]:
    """Return a row for each step; `lengths` gives the form of shapes and strides."""
    return [
        {
            "step": step.text,
            "kind": step.kind,
            "storage": step.view.storage,
            "shape": lengths(step.view.shape),
            "strides": lengths(step.view.strides),
            "offset": step.view.offset,
            "contiguous": step.view.is_contiguous,
        }
        for step in chain.steps
    ]
