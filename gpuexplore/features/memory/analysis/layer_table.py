"""The layers of a model one by one: what each makes, how many parameters it has, and what stays of it."""

from collections import Counter
from dataclasses import dataclass

from gpuexplore.features.memory.analysis.layers.kinds import KINDS
from gpuexplore.features.memory.analysis.models import LayeredModel, tape_of
from gpuexplore.features.memory.analysis.setup import Training


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer.

    Attributes:
        label: its kind, its numbers and its place.
        parameter_count: numbers it trains; tied ones count where they are first.
        output_bytes: of what it hands on, for the batch.
        kept_bytes: that stay from its forward to its backward, for the batch, without what an earlier layer keeps.
        keeps: the same in words.
    """

    label: str
    parameter_count: int
    output_bytes: int
    kept_bytes: int
    keeps: str


def layer_rows(model: LayeredModel, setup: Training, micro_batch: int) -> tuple[LayerRow, ...]:
    """Return a row for each layer of a training step, the loss last."""
    tape = tape_of(model, setup)
    parameters: Counter[int] = Counter()
    kept: Counter[int] = Counter()
    outputs: dict[int, int] = {}
    seen: set[int] = {0}  # the batch is there anyway
    seen_weights: set[int] = set()
    for step in tape.steps:
        outputs[step.layer] = tape.buffers[step.outputs[0]].size.at(micro_batch)
        kept[step.layer] += sum(tape.buffers[buffer].size.at(micro_batch) for buffer in {*step.kept} - seen)
        seen |= {*step.kept}
        parameters[step.layer] += sum(tape.weights[weight] for weight in {*step.weights} - seen_weights)
        seen_weights |= {*step.weights}
    words = [KINDS[layer.kind].keeps for layer in model.layers] + ["its output"]
    return tuple(
        LayerRow(label, parameters[place], outputs.get(place, 0), kept[place], words[place])
        for place, label in enumerate(tape.layers)
        if place in outputs
    )
