import re
from contextlib import suppress

import pytest
from playwright.sync_api import expect

from gpuexplore.store import open_store
from scripts.app_server import database_of, served
from tests.browser.conftest import AGAIN_MS, settle, until_seen

pytestmark = pytest.mark.browser

QUICK = "?size=32,64&dtype=fp32,fp16&budget=0.02"
ENDLESS = "?size=256:1024:%2B32&dtype=fp16&impl=numpy&budget=60"


def title(page, text):
    return page.get_by_role("heading", level=1, name=text)


def run_button(page):
    return page.get_by_role("button", name=re.compile(r"^.*Run \d+ points?"))


def charts(page):
    return page.locator("[data-testid=stVegaLiteChart]")


def start(page, address):
    page.goto(address)
    run_button(page).click()
    page.wait_for_url("**run=**")


def test_the_first_visit_after_a_start_may_be_a_deep_link(visitor, tmp_path):
    with served(tmp_path, warm=False) as address:
        page = visitor()
        page.goto(f"{address}/devices?q=H100")
        expect(title(page, "Devices")).to_be_visible()
        expect(page.get_by_label("Search", exact=True)).to_have_value("H100")
        expect(page.get_by_role("link", name="Benchmark")).to_be_visible()


def test_a_click_measures_the_chart_grows_and_the_link_keeps_the_run(page, address, visitor):
    start(page, f"{address}/{QUICK}")
    expect(charts(page).first).to_be_visible()
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    expect(page.locator("h4").first).not_to_contain_text("So far")
    headline = page.locator("h4").first.inner_text()
    expect(charts(page)).to_have_count(1)

    page.reload()
    expect(page.locator("h4").first).to_have_text(headline)

    other = visitor()
    other.goto(page.url)
    expect(other.locator("h4").first).to_have_text(headline)
    other.get_by_role("button", name="Edit").click()
    expect(other.get_by_label("Sizes", exact=True)).to_have_value("32,64")


def test_one_click_on_the_start_page_gives_every_point_of_the_default_chart(page, address, home):
    start(page, address)
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    with open_store(database_of(home)) as store:
        run = store.load(re.search(r"run=(\w+)", page.url)[1])
    assert len(run.results) == 36
    assert {result.status.value for result in run.results} == {"ok"}


def test_a_bad_value_in_the_url_is_named_and_the_page_stays_usable(page, address):
    page.goto(f"{address}/?dtype=fp8&size=0")
    expect(page.get_by_text("dtype 'fp8': expected fp64, fp32, tf32, bf16, fp16")).to_be_visible()
    expect(page.get_by_text("size '0': expected whole numbers from 1")).to_be_visible()
    expect(run_button(page)).to_be_enabled()


def test_nonsense_in_a_widget_is_named_and_cannot_be_run(page, address):
    page.goto(address)
    sizes = page.get_by_label("Sizes", exact=True)
    sizes.fill("many")
    sizes.press("Enter")
    expect(page.get_by_text("size 'many': expected whole numbers from 1")).to_be_visible()
    expect(page.get_by_test_id("stBaseButton-primary")).to_be_disabled()


def test_a_run_can_be_cancelled_after_a_reload_and_keeps_what_was_measured(page, address):
    start(page, f"{address}/{ENDLESS}")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Cancel").click()
    cancelled = re.compile(r"Cancelled (after \d+ of \d+ points|before anything was measured)")
    expect(page.get_by_text(cancelled)).to_be_visible()


def test_an_unknown_run_is_told_and_leads_to_a_new_one(page, address):
    page.goto(f"{address}/?run=nothere")
    page.get_by_role("button", name="Start with a new run").click()
    expect(page.get_by_text("Nothing is measured yet")).to_be_visible()


def test_the_owners_name_is_a_cookie_that_scripts_cannot_read(page, address):
    page.goto(address)
    (cookie,) = [cooky for cooky in page.context.cookies() if cooky["name"] == "gpuexplore_owner"]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"


def test_back_restores_the_settings_before(page, address):
    page.goto(f"{address}/?size=32")
    expect(page.get_by_label("Sizes", exact=True)).to_have_value("32")
    page.goto(f"{address}/?size=48")
    expect(page.get_by_label("Sizes", exact=True)).to_have_value("48")
    page.go_back()
    expect(page.get_by_label("Sizes", exact=True)).to_have_value("32")


def test_a_chosen_operation_and_its_sizes_survive_a_reload(page, address):
    page.goto(address)
    page.get_by_label("Operation", exact=True).click()
    page.get_by_role("option", name="Softmax").click()
    page.wait_for_url("**op=softmax**")
    settle(page)  # a field redrawn between its selection and the typing keeps what it had
    page.get_by_label("Sizes", exact=True).fill("100,200")
    page.get_by_label("Sizes", exact=True).press("Enter")
    page.wait_for_url("**size=100**")

    page.reload()
    expect(page.get_by_label("Sizes", exact=True)).to_have_value("100,200")
    expect(page.get_by_text("Softmax").first).to_be_visible()


def test_the_sidebar_leads_from_page_to_page_each_with_its_title_and_choices_of_its_own(page, address):
    page.goto(address)
    expect(title(page, "Benchmark")).to_be_visible()
    for name in ("Kernels", "Dtype what-if", "Roofline", "Devices", "Benchmark"):
        page.get_by_role("link", name=name, exact=False).click()
        expect(title(page, name)).to_be_visible()
        expect(page).to_have_title(f"{name} · gpuexplore")
        if name == "Dtype what-if":
            expect(page.get_by_label("Shape", exact=True)).to_have_value("4096")
            expect(charts(page)).to_have_count(4)


def test_a_click_on_a_heading_sorts_by_value_not_by_the_text_of_its_units(page, address):
    page.goto(f"{address}/devices?q=Tesla P")
    table = page.locator("[data-testid=stDataFrame]").last  # drawn on a canvas: its copy for screen readers is read
    rates = table.locator("tbody tr td:nth-child(4)")
    expect(rates.first).to_be_attached()
    settle(page)
    by_value = sorted(rates.all_inner_texts(), key=float)
    assert rates.all_inner_texts() != by_value
    assert 10 * float(by_value[0]) < float(by_value[-1])

    canvas = table.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    place = canvas.bounding_box()

    def sorts_by_value(x):
        page.mouse.click(place["x"] + x, place["y"] + 15)
        with suppress(AssertionError):
            expect(rates).to_have_text(by_value, timeout=AGAIN_MS / 4)
            return True

    assert any(map(sorts_by_value, range(200, 600, 30)))  # one of them hits the heading fp64


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "devices"])
def test_no_page_scrolls_sideways(visitor, address, path, scheme, width):
    page = visitor(width, color_scheme=scheme)
    page.goto(f"{address}/{path}")
    expect(page.locator("h1")).to_be_visible()
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("it => it.scrollWidth <= it.clientWidth")


def test_a_kernel_is_explained_for_a_gpu_that_is_not_here_and_the_link_keeps_the_choices(page, address):
    page.goto(f"{address}/kernels?impl=numba-cuda-shared&shape=1024")
    expect(title(page, "Kernels")).to_be_visible()
    expect(page.get_by_text("per multiprocessor")).to_be_visible()
    page.get_by_label("Target GPU").click()
    page.keyboard.type("A100 SXM4 80")
    page.keyboard.press("Enter")
    page.wait_for_url("**gpu=a100-sxm4-80gb**")
    expect(page.get_by_text("108 multiprocessors")).to_be_visible()

    page.reload()
    expect(page.get_by_text("108 multiprocessors")).to_be_visible()


def test_the_machine_code_of_a_kernel_is_shown_for_a_gpu_that_is_not_here(page, address):
    page.goto(f"{address}/kernels?impl=numba-cuda-vector&gpu=h100-sxm5-80gb")
    expect(page.get_by_role("heading", name="Machine code")).to_be_visible()
    expect(page.get_by_text("First bottleneck:")).to_be_visible()
    expect(page.get_by_text("sm_90a")).to_be_visible()
    expect(page.get_by_text("Upper bounds at the rated clock", exact=False).first).to_be_visible()

    whole = page.get_by_text(re.compile(r"^Show all [\d,]+ instructions$"))
    whole.click()
    expect(page.get_by_text("The whole kernel for sm_90a", exact=False)).to_be_visible()


def test_a_kernel_is_run_in_the_interpreter_and_its_steps_are_pictures_and_sentences(page, address):
    page.goto(f"{address}/kernels?impl=numba-cuda-naive&gpu=h100-sxm5-80gb")
    page.get_by_text("Run numba-cuda-naive in the interpreter").click()
    strided = page.get_by_text("Warp 0 reads 16 elements of A for its 32 lanes, in 16 sectors of 32 bytes")
    expect(strided).to_be_visible()
    expect(page.get_by_text("No race and no error.")).to_be_visible()

    page.get_by_role("button", name="Writes out").click()
    expect(page.get_by_text("Warp 0 writes 32 elements of out in 16 sectors")).to_be_visible()
    page.wait_for_url("**step=65**")
    page.goto(f"{address}/kernels?impl=numba-cuda-shared&gpu=h100-sxm5-80gb&interpret=yes")
    page.get_by_role("button", name="Run it now").click()
    until_seen(
        page.get_by_role("button", name="First barrier").click,
        page.get_by_text("Warp 0 waits at the barrier: 1 of 8 warps have arrived"),
    )

    page.reload()
    expect(page.get_by_text("Warp 0 waits at the barrier")).to_be_visible()


def test_a_grid_that_does_not_cover_the_output_is_explained_in_the_link_too(page, address):
    page.goto(f"{address}/kernels?impl=numba-cuda-naive&shape=64&grid=2,4&gpu=nonsense")
    expect(page.get_by_text("2,048 of 4,096 elements (50.0 %) would never be written")).to_be_visible()
    expect(page.get_by_text("gpu 'nonsense'")).to_be_visible()


def test_the_ladder_of_the_cpu_is_measured_at_a_click(page, address):
    page.goto(f"{address}/kernels?impl=numba-cpu&shape=64")
    page.get_by_role("button", name="Measure the ladder").click()
    page.wait_for_url("**run=**")
    expect(page.get_by_text("in the same rounds.", exact=False)).to_be_visible()


def pick(page, label, option):
    """Choose an option; a page that is redrawn meanwhile, as when a run ends, closes the menu."""
    option = page.get_by_role("option", name=option)
    until_seen(page.get_by_label(label).click, option)
    option.first.click()


def test_what_mfu_is_relative_to_is_chosen_and_stays_in_the_link(page, address):
    start(page, f"{address}/{QUICK}")
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)  # its end redraws the page
    page.get_by_role("button", name="Baseline, lines").click()
    pick(page, "MFU relative to", "Best published result: —")
    expect(page.get_by_text("There is no MFU relative to the best published result")).to_be_visible()
    page.wait_for_url("**peak=published**")
    assert "run=" in page.url
    page.reload()
    expect(page.get_by_text("There is no MFU relative to the best published result")).to_be_visible()
    page.get_by_text("MFU against every known peak").click()
    expect(page.get_by_text("Source, or why it is unknown").first).to_be_visible()


def test_an_empty_page_leads_to_a_recorded_run_whose_settings_can_be_measured_here(page, address):
    page.goto(address)
    page.get_by_role("button", name=re.compile("See a recorded run")).first.click()
    page.wait_for_url("**run=recorded-**")
    expect(page.get_by_text("not measured by this server")).to_be_visible()
    expect(charts(page).first).to_be_visible()
    expect(page.get_by_role("button", name="Run here")).to_be_enabled()


def test_a_recording_joins_the_charts_of_a_live_run_and_the_link_keeps_it(page, address):
    start(page, f"{address}/{QUICK}")
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)  # its end redraws the page
    page.get_by_role("button", name="Baseline, lines").click()
    pick(page, "Compare with", re.compile("recorded: "))
    page.wait_for_url("**with=**")
    expect(page.get_by_text("Hollow points and thin lines are")).to_be_visible()

    page.reload()
    expect(page.get_by_text("Hollow points and thin lines are")).to_be_visible()
