"""Places, their tabs, the search and the status of the header; and what few clicks lead to."""

import re

import pytest
from playwright.sync_api import expect

from gpuexplore.core.model import Experiment, Shape
from tests.analysis.made import ok
from tests.browser.conftest import HAND, settle, title

pytestmark = pytest.mark.browser
FOCUSED = """() => {
    let at = document.activeElement
    while (at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement
    return at.innerText || at.getAttribute("aria-label") || ""
}"""


def main(page):
    return page.get_by_test_id("stMain")


def place(page, name):
    return page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=False)


def test_ten_places_and_their_tabs_take_the_choice_along(page, address):
    page.goto(f"{address}/which-gpu?op=softmax")
    expect(page.get_by_test_id("stSidebar").get_by_test_id("stPageLink")).to_have_count(10)
    expect(main(page).get_by_text(re.compile("^Fastest: "))).to_be_visible()
    settle(page)

    main(page).get_by_role("link", name="Dtype what-if").click()
    expect(title(page, "Dtype what-if")).to_be_visible()
    page.wait_for_url("**what-if?op=softmax")
    expect(main(page).get_by_text(re.compile("^Softmax of rows, "))).to_be_visible()
    main(page).get_by_role("button", name="Edit").click()
    page.get_by_text("A transformer block", exact=True).first.click()
    page.wait_for_url("**what=block**")
    settle(page)
    main(page).get_by_role("link", name="Which GPU").click()
    expect(title(page, "Which GPU")).to_be_visible()


def test_search_by_keys_alone_leads_to_an_operation_a_gpu_and_a_page(page, address):
    page.goto(f"{address}/devices")
    field = page.get_by_role("combobox", name="Find anything")
    for typed, where in (
        ("softmax", "benchmark?op=softmax"),
        ("RTX 4090", "what-if?device=rtx-4090"),
        ("queue", "queue"),
    ):
        settle(page)
        page.keyboard.press("Control+k")
        expect(field).to_be_focused()
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{where}")
    expect(title(page, "Queue")).to_be_visible()

    page.keyboard.press("Control+k")
    page.keyboard.type("no such thing")
    expect(page.get_by_text("No match")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()


def test_status_says_what_the_server_does_and_opens_the_queue(page, address, store):
    experiment = Experiment("matmul", (Shape.of(m=8, k=8, n=8),), ("fp32",), ("numpy",), ("nowhere",))
    waiting = store.submit(experiment, "somebody")
    page.goto(f"{address}/devices")
    expect(page.get_by_text(re.compile("1 waiting$"))).to_be_visible()
    assert store.request_cancel(waiting, "somebody")
    expect(page.get_by_text(re.compile("· idle$"))).to_be_visible()

    page.get_by_text(re.compile("· idle$")).click()
    page.get_by_role("button", name="Queue").click()
    expect(title(page, "Queue")).to_be_visible()


def test_run_is_the_sixth_stop_of_the_tab_key_at_most(page, address):
    page.goto(f"{address}/benchmark")
    expect(page.get_by_role("button", name=re.compile(r"Run \d+ points"))).to_be_visible()
    settle(page)

    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Skip to main content"
    page.keyboard.press("Enter")
    stops = []
    for _ in range(5):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED))
    assert any("Run" in stop and "points" in stop for stop in stops), stops


def test_on_a_phone_the_sidebar_gives_way_to_the_page_that_it_opened(page, address):
    page.set_viewport_size(HAND)
    page.goto(address)
    page.get_by_test_id("stExpandSidebarButton").click()
    place(page, "Runs").click()

    expect(title(page, "Runs")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    page.evaluate("localStorage.clear()")  # Streamlit keeps there that it is collapsed


def test_bf16_on_an_l4_is_answered_without_a_click(page, address):
    page.goto(address)

    expect(page.get_by_text(re.compile(r"bf16 over fp32: .*[\d.]+× on an L4"))).to_be_visible()


def test_h100_and_a100_are_compared_for_a_layer_with_one_click(page, address):
    page.goto(address)
    page.get_by_text("Linear layer", exact=True).click()

    for gpu in ("H100", "A100"):
        expect(page.locator("label").filter(has_text=gpu)).to_have_text(re.compile(rf"{gpu}[\d.]+\s(µs|ms)"))


def test_run_of_last_week_is_compared_with_two_clicks(page, address, mine):
    experiment = Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32",), ("numpy",), ("cpu",))
    times_s = {"Last week": 1e-3, "Today": 2e-3}
    for days, (name, time_s) in zip((7, 0), times_s.items(), strict=True):
        mine(name, experiment, [ok(time_s, size=64, implementation="numpy")], days=days)
    page.goto(address)
    place(page, "Today").click()
    main(page).get_by_role("button", name="Compare with").click()

    expect(title(page, "Compare")).to_be_visible()
    expect(page.get_by_text("Of 1 case: 1 slower")).to_be_visible()


def test_wall_of_a_new_room_is_three_clicks_away(page, address):
    page.goto(address)
    place(page, "Rooms").click()
    page.get_by_role("button", name="Open a room").click()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the wall").click()

    expect(opened.value.get_by_text(re.compile("[A-Z0-9]{3} [A-Z0-9]{3}")).first).to_be_visible()
