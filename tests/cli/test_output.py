"""What a run prints, on made-up results, and ages that commands read."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuexplore.cli.output import read_age, utc_before
from gpuexplore.cli.run_report import _print_summary
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Flag
from tests.analysis.made import analyzed, ok


def test_a_headline_without_further_sentences_is_followed_by_one_empty_line(capsys):
    _print_summary(analyzed(ok(flags=[Flag("launch_bound", "a call on one element already takes 1 ms")])))

    before, headline, after, why = capsys.readouterr().out.splitlines()[:4]
    assert (before, after) == ("", "")
    assert headline.startswith("At 100 × 100 × 100, torch in fp32 takes")
    assert why == "What limits torch in fp32 at 100 × 100 × 100:"


def test_what_the_machine_does_to_all_times_is_one_line(capsys):
    flags = [Flag("drifted", "slow in half of the rounds", 0.2)]
    _print_summary(analyzed(*(ok(size=size, flags=flags) for size in (10, 20, 30))))

    told = capsys.readouterr().out
    assert told.count("This machine is shared: times vary by about 20.0 % from run to run.") == 1
    assert "slow in half" not in told


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1.5d", "90 days", "1y", "999999w", "٣d"])
def test_ages_that_are_none_are_named_with_those_that_are(text):
    with pytest.raises(InvalidInput, match="expected a number and a unit, like 90d"):
        read_age("age", text)


def test_an_age_is_a_moment():
    now = datetime(2026, 1, 31, tzinfo=UTC)

    assert read_age("age", " 12h ") == timedelta(hours=12)
    assert utc_before("age", "30d", now) == "2026-01-01T00:00:00.000000+00:00"
