"""The frame around every page: navigation. Titles belong to the pages."""

import time
from pathlib import Path
from typing import Any

import streamlit as st

from gpuexplore.devices import ACCELERATORS
from gpuexplore.errors import GpuExploreError, StoreUnavailable
from gpuexplore.served import PAGES
from gpuexplore.ui.identity import show_account
from gpuexplore.ui.present.view import is_presented
from gpuexplore.ui.roles import show_role
from gpuexplore.ui.run_head.recent import show_recent_runs
from gpuexplore.ui.session import RETRY_S, draw_once_back, draw_once_writable, note_visit
from gpuexplore.ui.shared.quiet import hold_back
from gpuexplore.ui.turns.redraws import FEW, drawn_in_turn
from gpuexplore.ui.url_widgets import show_problem

ICON = Path(__file__).with_name("icon.svg")


def _navigation() -> Any:
    """Return the page that is asked for."""
    return st.navigation(
        {
            "Measure": [
                st.Page(
                    PAGES / "benchmark.py",
                    title="Benchmark",
                    icon=":material/timer:",
                    default=True,
                    help="Measure an operation here and see time, speedup and MFU, with what limits them.",
                ),
                st.Page(
                    PAGES / "runs.py",
                    title="Runs",
                    icon=":material/history:",
                    url_path="runs",
                    help="What was measured before, by title, device and best rate: find it, name it, open it.",
                ),
                st.Page(
                    PAGES / "compare.py",
                    title="Compare",
                    icon=":material/balance:",
                    url_path="compare",
                    help="Two runs beside each other: what got faster or slower, and what cannot be told.",
                ),
                st.Page(
                    PAGES / "kernels.py",
                    title="Kernels",
                    icon=":material/stairs:",
                    url_path="kernels",
                    help="Our own kernels from the naive loop up: grids, registers, occupancy, PTX, for any GPU.",
                ),
                st.Page(
                    PAGES / "transfers.py",
                    title="Transfers",
                    icon=":material/swap_horiz:",
                    url_path="transfers",
                    help="What moving data and launching costs, and from which size a GPU beats this CPU all the same.",
                ),
                st.Page(
                    PAGES / "training.py",
                    title="Training",
                    icon=":material/model_training:",
                    url_path="training",
                    help="Small models learn here in fp32, bf16 and fp16, or in several processes: losses and phases.",
                ),
            ],
            "Understand": [
                st.Page(
                    PAGES / "atlas.py",
                    title="Atlas",
                    icon=":material/map:",
                    url_path="atlas",
                    help="What GPUs were measured to do, by source, over what is predicted; which GPU for a call.",
                ),
                st.Page(
                    PAGES / "what_if.py",
                    title="Dtype what-if",
                    icon=":material/compare_arrows:",
                    url_path="what-if",
                    help="Time, memory and error in every number format, on local and hypothetical GPUs.",
                ),
                st.Page(
                    PAGES / "roofline.py",
                    title="Roofline",
                    icon=":material/roofing:",
                    url_path="roofline",
                    help="Results below the roofs of a device: what limits each, and how near it comes.",
                ),
                st.Page(
                    PAGES / "trace.py",
                    title="Trace",
                    icon=":material/flowsheet:",
                    url_path="trace",
                    help="A torch.profiler trace: where its time goes, and how near the roof its operations come.",
                ),
                st.Page(
                    PAGES / "memory.py",
                    title="Memory",
                    icon=":material/stacked_bar_chart:",
                    url_path="memory",
                    help="What training or serving a model needs, when it needs most, and the largest batch that fits.",
                ),
            ],
            "Learn": [
                st.Page(
                    PAGES / "lessons.py",
                    title="Lessons",
                    icon=":material/school:",
                    url_path="lessons",
                    help="Guess, measure here, see why: fourteen lessons of ten minutes, and a tour.",
                ),
                st.Page(
                    PAGES / "rooms.py",
                    title="Rooms",
                    icon=":material/groups:",
                    url_path="rooms",
                    help="A class together: joined by a code, without an account; its leader says what comes next.",
                ),
                st.Page(
                    PAGES / "timing_mistakes.py",
                    title="Timing mistakes",
                    icon=":material/timer_off:",
                    url_path="timing-mistakes",
                    help="Ways to get a wrong number, each made here beside the right one, and what gives it away.",
                ),
                st.Page(
                    PAGES / "fact_check.py",
                    title="Fact check",
                    icon=":material/fact_check:",
                    url_path="fact-check",
                    help="What teaching notebooks claim about GPUs, and what follows from their own numbers.",
                ),
                st.Page(
                    PAGES / "tensors.py",
                    title="Tensors",
                    icon=":material/grid_on:",
                    url_path="tensors",
                    help="Storage, strides, offset: what views, copies and writes do, what strided reads cost.",
                ),
                st.Page(
                    PAGES / "errors.py",
                    title="Errors",
                    icon=":material/error:",
                    url_path="errors",
                    help="Errors people meet in torch, provoked here: its words, what they mean, and what to do.",
                ),
            ],
            "Server": [
                st.Page(
                    PAGES / "devices.py",
                    title="Devices",
                    icon=":material/memory:",
                    url_path="devices",
                    help=f"The peaks of this machine with sources, and {len(ACCELERATORS)} accelerators beside them.",
                ),
                st.Page(
                    PAGES / "queue.py",
                    title="Queue",
                    icon=":material/hourglass_top:",
                    url_path="queue",
                    help="What is measured where, who waits and how long, and how the server is.",
                ),
            ],
        },
        position="hidden" if is_presented() else "sidebar",
        expanded=True,
    )


def _draw() -> None:
    if not is_presented():
        st.logo(Path(__file__).with_name("logo.svg"), size="large", icon_image=ICON)
    page = _navigation()
    st.set_page_config(page_title=f"{page.title} · gpuexplore", page_icon=ICON, layout="wide")
    if not is_presented():
        show_account()
        show_role()
        show_recent_runs()
    trouble = note_visit()
    try:
        if trouble is not None:
            st.fragment(draw_once_writable, run_every=RETRY_S)()
        hold_back()
        with drawn_in_turn():
            page.run()
    except StoreUnavailable as error:
        if str(error) != str(trouble):
            show_problem(error)
        st.fragment(draw_once_back, run_every=RETRY_S)(time.monotonic())
    except GpuExploreError as error:  # forged values: a sentence, and no traceback in the log
        show_problem(error)


with FEW.one():
    _draw()
