"""What to train, chosen on the page and kept in the link."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.features.training.measure import DEFAULTS, MODES, PRESETS, most_processes
from gpuexplore.features.training.measure.setup import DATA, OPTIMIZERS
from gpuexplore.model import Device
from gpuexplore.ui.url_widgets import segments, select, several, text

OWN = "own widths"
DEFAULT_WIDTHS = "784-256-10"


def choose(devices: Sequence[Device]) -> dict[str, str]:
    """Draw the choices; return the arguments of the training, as texts."""
    first, second, third, fourth = st.columns([3, 2, 2, 2], gap="medium")
    with first:
        model = select("Model", "model", [*PRESETS, OWN], shown=_model_label)
        if model == OWN:
            model = text("Widths", "widths", DEFAULT_WIDTHS, help="Of an MLP; hidden layers alike.")
    usual = PRESETS[model].batch if model in PRESETS else 128
    with second:
        batch = text("Batch", "batch", "", help="Samples of a step.", placeholder=str(usual))
    with third:
        steps = text("Steps", "steps", DEFAULTS["steps"], help="Of each mode.")
    with fourth:
        data = segments("Data", "data", list(DATA), shown=str.capitalize)
    modes = several("Modes", "modes", list(MODES), default=DEFAULTS["modes"].split(","))
    st.caption(f"{_about(model)}{'; '.join(f'{name}: {MODES[name].about}' for name in modes)}. Data: {DATA[data]}.")
    return {"model": model, "batch": batch, "steps": steps, "modes": ",".join(modes), "data": data} | _more(devices)


def query_of(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the link parameters of this page for the arguments of a training."""
    names = {"learning_rate": "rate"}
    query = {names.get(name, name): text for name, text in arguments.items()}
    model = query.get("model", "")
    return query if model in PRESETS or not model else query | {"model": OWN, "widths": model}


def _model_label(name: str) -> str:
    return name if name in PRESETS else "Another MLP, by its widths"


def _about(model: str) -> str:
    return f"{model}: {PRESETS[model].about}. " if model in PRESETS else ""


def _more(devices: Sequence[Device]) -> dict[str, str]:
    with st.expander("Optimizer, processes and seed"):
        columns = st.columns(4, gap="medium")
        with columns[0]:
            optimizer = select("Optimizer", "optimizer", list(OPTIMIZERS))
        with columns[1]:
            rate = text("Learning rate", "rate", "", help="Of the optimizer.", placeholder=f"{OPTIMIZERS[optimizer]:g}")
        with columns[2]:
            most = max(most_processes(device, gpu_count_of(devices)) for device in devices)
            count = text("Processes", "processes", DEFAULTS["processes"], help=f"1 to {most}, by torch's launcher.")
        with columns[3]:
            seed = text("Seed", "seed", DEFAULTS["seed"], help="Of the weights and the batches.")
    return {"optimizer": optimizer, "learning_rate": rate, "processes": count, "seed": seed}


def gpu_count_of(devices: Sequence[Device]) -> int:
    """Return how many GPUs this server has."""
    return sum(device.kind == "cuda" for device in devices)
