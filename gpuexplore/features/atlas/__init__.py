"""Atlas: what GPUs were measured to do, by whom, over what is predicted, and which GPU suits a call."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "atlas",
    pages=(
        Page(
            "atlas",
            "Atlas",
            "Roofline",
            "Measured GPU performance by source, next to predictions.",
            reads="op dtype gpus show calls shape point",
            terms=("Point", "Published", "Prediction", "MFU"),
            script=Path(__file__).with_name("page.py"),
        ),
        Page(
            "which-gpu",
            "Which GPU",
            "Predict",
            "Time, energy and price of one call on every GPU that was measured or is rented out.",
            reads="op dtype shape calls by price",
            terms=("Prediction", "Published", "Kind of calls"),
            script=Path(__file__).with_name("which_page.py"),
        ),
    ),
    commands={"atlas": "measured GPU performance with its sources, and which GPU suits a call"},
    functions=dict.fromkeys(("atlas", "which_gpu"), "gpuexplore.features.atlas.functions"),
    preload="gpuexplore.features.atlas.ui.view",
)
