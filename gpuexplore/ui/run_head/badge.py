"""How far a run's times can be trusted, as a badge whose tooltip says why."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import streamlit as st

from gpuexplore.analysis.run.run_summary import quality_of
from gpuexplore.model import Run
from gpuexplore.ui.markdown import plain

Color = Literal["green", "orange", "red", "blue"]


@dataclass(frozen=True, slots=True)
class Badge:
    """A word with its colour and the reason for it."""

    word: str
    icon: str
    color: Color
    why: str


LOOKS: Mapping[str, tuple[str, Color]] = MappingProxyType(
    {
        "clean": (":material/verified:", "green"),
        "noisy": (":material/graphic_eq:", "orange"),
        "contended": (":material/group_work:", "red"),
    }
)


def badge_of(run: Run) -> Badge | None:
    """Return the badge of a run of the store; None before anything was measured."""
    if run.origin:
        return Badge("imported", ":material/upload_file:", "blue", f"Measured elsewhere: {run.origin}")
    quality, why = quality_of([result for result in run.results if result.measurement])
    if quality is None or why is None:
        return None
    icon, color = LOOKS[quality]
    return Badge(quality, icon, color, f"{why[0].upper()}{why[1:]}")


def show_badge_of(run: Run) -> None:
    """Draw the badge of a run."""
    badge = badge_of(run)
    if badge:
        st.badge(badge.word, icon=badge.icon, color=badge.color, help=plain(badge.why))
