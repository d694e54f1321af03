"""Atlas: what GPUs were measured to do, by whom, over what is predicted."""

import streamlit as st

from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.ui.picked import choose, facts_of, show_picked
from gpuexplore.features.atlas.ui.view import show_atlas, show_points
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page, parameters
from gpuexplore.ui.navigation import file_of, pages
from gpuexplore.ui.shared.rests_on import show_rests_on

if not {"by", "price"}.isdisjoint(parameters()) and "which-gpu" in pages():  # it stood on this page
    given = parameters()
    first = {"dtype": given["dtype"].partition(",")[0]} if "dtype" in given else {}
    st.switch_page(file_of("which-gpu"), query_params=given | first)
st.title("Atlas")
st.caption(
    f"Measured GPU performance: {len(points()):,} measurements of {len({point.spec_key for point in points()})} "
    "GPUs, each with its source, next to predictions.",
    help=page_help("atlas"),
)
open_page("atlas")
said = st.container()
choice = choose()
facts = facts_of(choice)
show_atlas(choice, facts, said)
show_picked()
st.subheader("Basis of the predictions", anchor="basis")
st.caption(f"For {shape_label(choice.shape)}, the dotted line; other shapes can have another basis.")
show_rests_on(facts.predictions)
show_points(facts)
