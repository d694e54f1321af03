"""Fact check: what notebooks claim about GPUs, and whether a stated time or rate is possible."""

from pathlib import Path

from gpuexplore.registry import Feature, Page

FEATURE = Feature(
    "fact_check",
    page=Page(
        "fact-check",
        "Fact check",
        "Learn",
        4,
        "fact_check",
        "What teaching notebooks claim about GPUs, and what follows from their own numbers.",
        reads="row measuring",
        terms=("Claim", "Peak"),
        script=Path(__file__).with_name("page.py"),
    ),
    commands={
        "check": "whether a stated time is possible on a GPU: above its roof, or as good as known",
        "factcheck": "what the notebooks this grew from claim, and what follows from their numbers",
    },
    lesson_blocks=("claim",),
    functions={"is_possible": "gpuexplore.features.fact_check.functions"},
)
