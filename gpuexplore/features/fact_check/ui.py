"""The page Fact check: claims and verdicts as a table, the reasons of one, and a button that measures it here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from gpuexplore.core.model import Device, Result, Run
from gpuexplore.features.fact_check.analysis import Claim, claims, claims_of
from gpuexplore.features.fact_check.analysis.judge import Judgement, Verdict, judge
from gpuexplore.features.fact_check.analysis.measured import experiments
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.state import show_what_ended, start, started
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.session import known_devices, measured_results
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.url_widgets import select

VERDICTS: Mapping[Verdict, str] = {
    "impossible": "Above the compute peak or the memory bandwidth of every card of that name.",
    "contradicts itself": "The text disagrees with the printed output, or with what follows from it.",
    "not a measurement": "The clock was read before the device was done.",
    "wrong": "Disagrees with arithmetic, the table of accelerators or a source.",
    "not confirmed here": "Measured on this server by the right method, with another result.",
    "possible": "Not refuted, and not confirmed by anything on this server.",
    "confirmed here": "Computed or measured on this server, with the same result.",
}
JUDGED: Shared[tuple[Judgement, ...]] = Shared(4)


def _offer_measuring(claim: Claim, devices: Sequence[Device], shown: Sequence[Result]) -> None:
    """Draw the button that measures what would confirm `claim`, and the progress of what was started.

    Args:
        claim: the one that is explained.
        devices: that can be measured.
        shown: the results that its verdict rests on.
    """
    runs = started()
    show_what_ended(runs, shown)
    wanted = experiments(claim, devices)
    if wanted and not any(run.active for run in runs) and st.button("Measure it here", icon=":material/timer:"):
        start(wanted, devices)
    if claim.checks and not wanted:
        st.caption("No device of this server can measure this claim.")
    for run in runs:
        if run.active or any(result.measurement is None for result in run.results):
            show_run(run.id, _not_measured)


def _not_measured(run: Run) -> None:
    for result in run.results:
        if result.measurement is None:
            st.caption(f"{result.case.implementation}: {result.status.value}: {plain(result.reason or '')}.")


def show_claims() -> None:
    """Show every claim with its verdict, and the evidence for the one that is chosen."""
    devices = known_devices()
    known = tuple(measured_results(device) for device in devices)
    results = tuple(result for device in known for _, result in device.found)
    judged = JUDGED.get(known, lambda: tuple(judge(claim, results) for claim in claims()))
    counts = Counter(judgement.verdict for judgement in judged)
    st.markdown(" · ".join(f"{verdict} **{counts[verdict]}**" for verdict in VERDICTS if counts[verdict]))
    show_table(
        lambda: [
            {
                "Row": judgement.claim.id,
                "Verdict": judgement.verdict,
                "Claim": judgement.claim.claim,
                "Evidence": next(iter(judgement.evidence), None),
            }
            for judgement in judged
        ],
        ("claims", known),
        {},
        alt=f"Table of {len(judged)} claims of the notebooks with their verdicts and the strongest evidence",
        config={
            "Row": st.column_config.TextColumn(width=130),
            "Claim": st.column_config.TextColumn(width="large"),
            "Evidence": st.column_config.TextColumn(width="large"),
        },
    )
    st.subheader("Why", anchor="why")
    _offer_measuring(_show_one(judged), devices, results)
    with st.expander("What the verdicts mean"):
        st.markdown("\n".join(f"- **{verdict}**: {meaning}" for verdict, meaning in VERDICTS.items()))
        st.caption("A claim with several findings gets the verdict that comes first in this list.")


def _show_one(judged: Sequence[Judgement]) -> Claim:
    """Show the evidence of one claim, and return it: by default the one whose verdict is the strongest."""
    by_id = {found.claim.id: found for found in sorted(judged, key=lambda found: list(VERDICTS).index(found.verdict))}
    chosen = by_id[select("Claim", "row", list(by_id), shown=lambda row: f"{row}: {by_id[row].claim.claim}")]
    st.markdown(f"**{chosen.verdict[:1].upper()}{chosen.verdict[1:]}**")
    if chosen.evidence:
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in chosen.evidence))
    else:
        st.caption("The notebook printed no figure: there is nothing to check.")
    return chosen.claim


def show_lesson_block(block: Any, _count: int) -> None:
    """Show what the block `claim` of a lesson asks for: the verdicts on the claims of a row, with their reasons."""
    for claim in claims_of(block.row):
        found = judge(claim)
        st.markdown(f"**{plain(claim.claim)}** · {found.verdict}")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in found.evidence))


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the page Fact check with the choice of a block."""
    return {"row": claims_of(block.row)[0].id}
