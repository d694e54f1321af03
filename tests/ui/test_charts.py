"""A chart is sent as Vega-Lite beside its data."""

import altair as alt
import pandas as pd
import pyarrow as pa

from gpuexplore.ui.shared.charts import spec_of


def test_data_of_a_chart_are_arrow_tables_by_the_name_the_chart_gives_them():
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", None]})
    spec = spec_of(lambda: alt.Chart(frame).mark_point().encode(x="x", y="y"))

    with pa.ipc.open_stream(spec["datasets"][spec["data"]["name"]]) as stream:
        assert stream.read_all().to_pydict() == {"x": [1, 2], "y": ["a", None]}
