"""The page Fact check: the reasons of a verdict, a button that measures it here, and every claim with its verdict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import streamlit as st

from gpuexplore.core.model import Device, Result
from gpuexplore.features.fact_check.analysis import Claim, claims, claims_of
from gpuexplore.features.fact_check.analysis.judge import Judgement, Verdict, judge
from gpuexplore.features.fact_check.analysis.measured import experiments
from gpuexplore.ui.link import href
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.state import show_what_ended, start, started
from gpuexplore.ui.run.view import show_unmeasured
from gpuexplore.ui.session import known_devices, measured_results
from gpuexplore.ui.shared import Shared
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
COLOURS: Mapping[Verdict, str] = {
    "impossible": "refuted",
    "contradicts itself": "refuted",
    "wrong": "refuted",
    "not a measurement": "doubtful",
    "not confirmed here": "doubtful",
    "confirmed here": "confirmed",
}
STYLE = """<style>
.claims { padding: 0 !important; margin: 0; line-height: 1.6; }
.claims a { color: light-dark(#1f66b0, #7cbaf5); font-weight: 600; }
.claims li { display: grid; grid-template-columns: 10rem 1fr; gap: 1rem; align-items: start; padding: 0.6rem 0;
  margin: 0; border-top: 1px solid light-dark(#d9dee5, #343c47); list-style: none; }
.claims span { justify-self: start; display: inline-block; border-radius: 0.4rem; padding: 0 0.5rem;
  color: light-dark(#3d4653, #d5dbe3); background: light-dark(#e9edf1, #2c333d); margin-bottom: 0.2rem;
  white-space: nowrap; }
.claims .refuted { color: light-dark(#8c1a10, #ffb9ae); background: light-dark(#fde7e3, #4c201b); }
.claims .doubtful { color: light-dark(#6b4700, #fbd38d); background: light-dark(#fdf0d2, #45330f); }
.claims .confirmed { color: light-dark(#00543f, #9be3c9); background: light-dark(#dcf5ec, #123d31); }
.claims small { display: block; margin-top: 0.15rem; color: light-dark(#5c5f69, #a3a8b4); overflow-wrap: anywhere; }
@media (max-width: 640px) { .claims li { grid-template-columns: 1fr; gap: 0.3rem; } }
</style>"""
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
    show_unmeasured(runs)


def show_claims() -> None:
    """Show every claim with its verdict, and the evidence for the one that is chosen."""
    devices = known_devices()
    known = tuple(measured_results(device) for device in devices)
    results = tuple(result for device in known for _, result in device.found)
    judged = JUDGED.get(known, lambda: tuple(judge(claim, results) for claim in claims()))
    counts = Counter(judgement.verdict for judgement in judged)
    shown = [_badge(verdict, f"{verdict} {counts[verdict]}") for verdict in VERDICTS if counts[verdict]]
    st.html(f'{STYLE}<div class="claims">{" ".join(shown)}</div>')
    _offer_measuring(_show_one(judged), devices, results)
    st.subheader("All claims", anchor="claims")
    st.html(f'<ul class="claims">{"".join(map(_entry, judged))}</ul>')
    with st.expander("What the verdicts mean"):
        st.markdown("\n".join(f"- **{verdict}**: {meaning}" for verdict, meaning in VERDICTS.items()))
        st.caption("A claim with several findings gets the verdict that comes first in this list.")


def _badge(verdict: Verdict, text: str) -> str:
    return f'<span class="{COLOURS.get(verdict, "")}">{text}</span>'


def _entry(judgement: Judgement) -> str:
    """Return the line of a claim: the verdict, a link to its reasons with what is claimed, the strongest evidence."""
    claim = judgement.claim
    evidence = escape(next(iter(judgement.evidence), ""))
    said = f'<a href="{href(f"fact-check?row={claim.id}")}" target="_self">{claim.id}</a> {escape(claim.claim)}'
    return f"<li>{_badge(judgement.verdict, judgement.verdict)}<div>{said}<small>{evidence}</small></div></li>"


def _show_one(judged: Sequence[Judgement]) -> Claim:
    """Show the evidence of one claim, and return it: by default the one whose verdict is the strongest."""
    by_id = {found.claim.id: found for found in sorted(judged, key=lambda found: list(VERDICTS).index(found.verdict))}
    chosen = by_id[select("Claim", "row", list(by_id), shown=lambda row: f"{row}: {by_id[row].claim.claim}")]
    st.html(f'<div class="claims">{_badge(chosen.verdict, chosen.verdict)}</div>')
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
