"""Fact check: claims of notebooks about GPUs, and the plausibility of a claimed time or rate."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "fact_check",
    page=Page(
        "fact-check",
        "Fact check",
        "Learn",
        "Claims of teaching notebooks about GPUs, checked against their own numbers.",
        reads="row measuring",
        terms=("Claim", "Peak"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={
        "check": "check claimed times or rates, one or a file of them, against limits of GPUs and predictions",
        "factcheck": "claims of five teaching notebooks, checked against their own numbers",
    },
    lesson_blocks=("claim",),
    functions=dict.fromkeys(("check_claims", "is_possible"), "gpuexplore.features.fact_check.functions"),
)
