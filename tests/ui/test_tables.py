"""Tables hold numbers, in the unit that suits most of their column."""

from gpuexplore.ui.shared.tables import table_of


def test_numbers_stay_numbers_in_the_unit_of_their_column():
    table = table_of(
        [{"Time": 0.00123, "Rate": 5e11, "Size": 3 * 2**20}, {"Time": None, "Rate": 2e9, "Size": 2**20}],
        {"Time": "s", "Rate": "FLOP/s", "Size": "B"},
    )

    assert table.data.to_pydict() == {"Time": [1.23, None], "Rate": [500.0, 2.0], "Size": [3.0, 1.0]}
    assert table.formats == {"Time": "%.3g ms", "Rate": "%.3g GFLOP/s", "Size": "%.3g MiB"}


def test_figures_are_shown_with_three_significant_digits_and_counts_with_all_of_theirs():
    rows = [{"Time": 12.345678, "Loss": 6.3284719, "Cost": 12345.678, "Samples": 12345}, {"Time": 0.0063284719}]
    table = table_of(rows, {"Time": "s", "Cost": "count", "Samples": "count"})

    assert table.data.to_pydict() == {
        "Time": [12.345678, 0.0063284719],
        "Loss": [6.3284719, None],
        "Cost": [12300.0, None],
        "Samples": [12345, None],
    }
    assert table.formats == {"Time": "%.3g s", "Loss": "%.3g", "Cost": "%.5g", "Samples": "localized"}


def test_fractions_are_shown_as_percentages():
    table = table_of([{"MFU": 0.642}], {"MFU": "%"})

    assert table.data.to_pydict() == {"MFU": [64.2]}
    assert table.formats == {"MFU": "%.3g %%"}


def test_columns_in_which_nothing_is_known_are_left_out():
    table = table_of([{"Name": "a", "Time": None}, {"Name": "b"}], {"Time": "s"})

    assert table.data.to_pydict() == {"Name": ["a", "b"]}
    assert table.formats == {}
