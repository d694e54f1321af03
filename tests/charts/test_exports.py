"""Results as files: tables, text, a page to send, pictures, and what other harnesses read."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pytest
import vl_convert
from PIL import Image

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.charts.exports import EXPORTS, Exported, export, format_of
from gpuexplore.charts.exports.picture import NotDrawn, pictures, specification
from gpuexplore.charts.quick_altair import quick_altair
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Experiment, Options, Progress, Run, RunState, Shape
from tests.analysis.made import failed, ok
from tests.hardware.torch_answers import found_on

HOSTILE = 'a|b <script>alert(1)</script> [x](http://y) `c` & 50% $z_1$ \\end{table} "q"'
RESULTS = (
    ok(1e-3, size=64),
    ok(2e-3, size=64, implementation="numpy"),
    ok(4e-3, size=128),
    failed(reason="too | slow <b>", size=128, implementation="numpy"),
)


@pytest.fixture(scope="module")
def exported():
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in (64, 128))
    asked = Experiment("matmul", shapes, ("fp32",), ("numpy", "torch"))
    about = {"title": HOSTILE, "note": HOSTILE, "tags": ("<i>",), "created_utc": "2026-01-02T03:04:05+00:00"}
    run = Run("abcdefghij", "ada", asked, RunState.DONE, Progress(4, 4), RESULTS, **about)
    return Exported(asked, analyze(RESULTS), run)


@pytest.fixture(scope="module")
def contents(exported):
    """Return the file of each type."""
    with quick_altair():
        return {suffix: export(suffix, exported) for suffix in EXPORTS}


def test_a_page_to_send_says_that_nobody_tried_its_device(exported, tmp_path):
    there = found_on(tmp_path, "xpu")
    results = [ok(size=64, on=there.id)]
    results = [replace(result, environment=replace(result.environment, device=there)) for result in results]

    content = export(".html", Exported(exported.experiment, analyze(results), None)).decode()

    assert "gpuexplore has never been tested on Intel XPU" in content


def test_a_name_asks_for_the_longest_type_it_ends_in():
    assert format_of(Path("run.pyperf.json")) == ".pyperf.json"
    assert format_of(Path("run.json")) == ".json"
    with pytest.raises(InvalidInput, match=r"file type '.exe': expected .html, .json"):
        format_of(Path("run.exe"))


def test_tables_name_the_run_and_the_version(exported, contents):
    report = json.loads(contents[".json"])
    rows = list(csv.DictReader(StringIO(contents[".csv"].decode())))

    assert report["run"] == {
        "id": "abcdefghij",
        "title": HOSTILE,
        "note": HOSTILE,
        "tags": ["<i>"],
        "created_utc": "2026-01-02T03:04:05+00:00",
        "origin": None,
    }
    assert report["environment"]["app_version"] == "1"
    assert {(row["run_id"], row["title"], row["app_version"]) for row in rows} == {("abcdefghij", HOSTILE, "1")}
    assert json.loads(export(".json", replace(exported, run=None)))["run"] is None


def test_markdown_shows_names_as_they_are_in_a_table_that_holds(contents):
    text = contents[".md"].decode()
    rows = [line for line in text.splitlines() if line.startswith("|")]

    assert len(rows) == 2 + 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {11}
    assert r"a\|b \<script\>" in text
    assert r"skipped: too \| slow \<b\>" in text
    assert "gpuexplore run matmul" in text
    assert "run abcdefghij" in text


def test_latex_is_escaped_and_balanced(contents):
    text = contents[".tex"].decode()

    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert r"\textbackslash{}end\{table\}" in text
    assert r"50\% \$z\_1\$" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {9}
    assert all(sign.isascii() for sign in text)


def test_pyperf_reads_its_own_format(contents, tmp_path):
    pyperf = pytest.importorskip("pyperf")
    (tmp_path / "run.json").write_bytes(contents[".pyperf.json"])
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / "run.json"))

    assert suite.get_benchmark_names() == [
        "matmul[m=64,k=64,n=64-fp32-torch-cpu]",
        "matmul[m=64,k=64,n=64-fp32-numpy-cpu]",
        "matmul[m=128,k=128,n=128-fp32-torch-cpu]",
    ]
    assert suite.get_benchmarks()[0].median() == pytest.approx(1e-3)
    assert suite.get_benchmarks()[0].get_unit() == "second"


def test_pytest_benchmarks_statistics_are_those_of_the_samples(contents):
    report = json.loads(contents[".pytest-benchmark.json"])
    first = report["benchmarks"][0]

    assert len(report["benchmarks"]) == 3
    assert first["stats"]["median"] == pytest.approx(1e-3)
    assert first["stats"]["rounds"] == len(first["stats"]["data"]) == 9
    assert first["stats"]["min"] < first["stats"]["q1"] < first["stats"]["mean"] < first["stats"]["q3"]
    assert first["extra_info"]["mfu"] == pytest.approx(2 * 64**3 / 1e-3 / 1e12)


class _Page(HTMLParser):
    """What a page holds: its elements, the text outside of scripts, and everything it would load."""

    def __init__(self):
        super().__init__()
        self.elements, self.loaded, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.loaded += [value for name, value in attributes if name in ("src", "href", "xlink:href") and value]

    def handle_data(self, data):
        self.text.append(data)


def test_a_report_is_one_page_that_loads_nothing_and_shows_everything(contents):
    page = _Page()
    content = contents[".html"].decode()
    page.feed(content)

    assert page.elements.count("svg") == 4
    assert "script" not in page.elements
    assert "b" not in page.elements
    assert [address for address in page.loaded if not address.startswith("#")] == []
    assert page.elements.count("tr") >= 1 + 4
    text = " ".join(page.text)
    for said in (HOSTILE, "abcdefghij", "2026-01-02 03:04 UTC", "gpuexplore run matmul", "skipped: too | slow <b>"):
        assert said in text, said
    assert "url(http" not in content


def test_a_report_of_a_run_without_a_time_has_no_pictures(exported):
    nothing = replace(exported, analysis=analyze(RESULTS[3:]))
    page = _Page()
    page.feed(export(".html", nothing).decode())

    assert "svg" not in page.elements
    assert "skipped: too | slow <b>" in " ".join(page.text)


def test_pictures_hold_title_device_date_and_id(exported):
    from gpuexplore import charts

    spec = specification({None: charts.time(exported.analysis)}, "Time", exported.facts)
    panels = {panel: charts.time(exported.analysis, panel) for panel in ("fp32", "bf16")}
    svg, both = (each.decode() for each in pictures([spec, specification(panels, "Both", exported.facts)], "svg"))
    (png,) = pictures([spec], "png")

    for text in ("Time", "a made-up processor", "2026-01-02 03:04 UTC", "run abcdefghij"):
        assert text in svg, text
    assert "Both" in both
    assert png.startswith(b"\x89PNG")


TEXT = re.compile(r'<text[^>]*font-family="(?P<families>[^"]*)"[^>]*>(?P<words>[^<]+)</text>')
# https://www.w3.org/TR/css-fonts-4/#family-name-syntax
FAMILY = re.compile(r"'[^']+'|-?[A-Za-z_][\w-]*( -?[A-Za-z_][\w-]*)*")


def _raster(png):
    return np.asarray(Image.open(BytesIO(png)).convert("L"), dtype=np.int16)


def test_pictures_of_every_chart_show_their_text_in_a_font_that_every_reader_has(exported):
    from gpuexplore import charts

    shapes = [Shape.of(m=m, k=64, n=n) for m in (64, 128) for n in (64, 128)]
    wide = tuple(replace(each, case=replace(each.case, shape=shape)) for shape in shapes for each in RESULTS[:2])
    drawn = {name: getattr(charts, name)(exported.analysis) for name in ("time", "speedup", "share", "throughput")}
    drawn |= {"bandwidth": charts.bandwidth(exported.analysis), "heat_map": charts.heat_map(analyze(wide))}
    specs = [specification({None: chart}, f"Chart of {name}", exported.facts) for name, chart in drawn.items()]
    specs.append(drawn["time"].to_dict())  # as gx.chart saves it
    for name, svg, png in zip([*drawn, "gx"], pictures(specs, "svg"), pictures(specs, "png"), strict=True):
        texts = [(each["families"], each["words"]) for each in TEXT.finditer(svg.decode())]
        blank = _raster(vl_convert.svg_to_png(re.sub(r"<text.*?</text>", "", svg.decode(), flags=re.DOTALL), scale=2))
        inked = np.abs(_raster(png) - blank) > 64

        assert len(texts) > 4, name
        assert inked.sum() > 20 * sum(map(len, (words for _, words in texts))), name
        for families in {families.replace("&quot;", "'") for families, _ in texts}:
            *named, last = families.split(", ")
            assert all(map(FAMILY.fullmatch, named)), families
            assert last == "sans-serif"


def test_another_layout_stands_beside_device_and_date(exported):
    options = Options(layout="NT", align="pages")
    turned = replace(exported, experiment=replace(exported.experiment, options=options))

    assert {"layout NT", "arrays on 2 MiB boundaries"} <= set(turned.facts)
    assert not [fact for fact in exported.facts if "layout" in fact or "arrays" in fact]


def test_panels_side_by_side_each_draw_their_own_lines(exported):
    from gpuexplore import charts
    from gpuexplore.charts.points import panels

    results = [
        ok(seconds * size, size=size, dtype=dtype, implementation=name, on=on)
        for size in (64, 128)
        for name, seconds in (("numpy", 2e-5), ("torch", 1e-5))
        for dtype in ("fp32", "bf16")
        for on in ("cpu", "cuda:0")
    ]
    analysis = analyze(tuple(results))
    shown = panels(analysis)
    spec = specification({panel: charts.time(analysis, lines) for panel, lines in shown.items()}, "Both")
    (svg,) = (each.decode() for each in pictures([spec], "svg"))

    assert list(shown) == ["fp32", "bf16"]
    for dtype in shown:
        assert svg.count(f"Case: numpy · cpu in {dtype}") == 2, dtype
    assert '"expr": "width' not in json.dumps(spec)


@pytest.mark.parametrize("dtypes", [("fp32",), ("fp32", "bf16", "fp16")])
def test_every_chart_of_a_run_of_several_dtypes_is_drawn(exported, dtypes):
    results = tuple(
        ok(seconds * size, size=size, dtype=dtype, implementation=name)
        for size in (64, 128)
        for name, seconds in (("numpy", 2e-5), ("torch", 1e-5))
        for dtype in dtypes
    )
    shapes, names = exported.experiment.shapes, exported.experiment.implementations
    asked = Experiment("matmul", shapes, dtypes, names)
    report = export(".html", Exported(asked, analyze(results), replace(exported.run, results=results))).decode()

    assert report.count("<svg") == 4
    for dtype in dtypes:
        assert report.count(f"Case: numpy in {dtype}") >= 6, (
            dtype
        )  # two sizes in each chart but that of speedups, whose baseline it is


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(NotDrawn, match="the image was not rendered"):
        pictures([{"mark": 3}], "svg")


def test_every_type_has_a_button_and_a_content(contents):
    assert all(contents.values())
    assert len({kind.label for kind in EXPORTS.values()}) == len(EXPORTS)
