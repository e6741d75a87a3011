"""Everybody can work the page: by keyboard alone, by ear, in light and dark, and without moving pictures."""

from __future__ import annotations

import pytest

from tests.app.browser import truths
from tests.app.browser.contrast import CONTRASTS
from tests.app.browser.opening import excuse_refusals, go, hold, opened, owners_context, watching
from tests.app.browser.shapes import N, made_trace

EXAMPLE = "a=5-ten-objects-rcr&b=5-ten-objects-bacon&f=0&s=60&l=3&p=80"
MOST_PRESSES = 25
LEAST_CONTRAST = 4.5
SPOKEN = """
() => {
  window.said = [];
  const watcher = new MutationObserver(() => said.push(performance.now()));
  const all = { childList: true, characterData: true, subtree: true };
  watcher.observe(document.querySelector(".scope-spoken"), all);
}
"""
REACHED = """
() => {
  const one = document.activeElement;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
  window.reached ??= new Set();
  const again = one !== document.body && reached.has(one);
  reached.add(one);
  const seen = (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  return { again, ours: Boolean(one.closest(".scope")), seen, html: one.outerHTML.slice(0, 120) };
}
"""
AS_AT_FIRST = """
() => {
  document.querySelector("dialog[open]")?.close();
  document.querySelectorAll(".scope details").forEach((one) => (one.open = false));
  document.body.classList.remove("dark");
  document.activeElement.blur();
}
"""
MISSED = """
() => [...document.querySelectorAll(".scope :is(button, select, input, summary, a, [tabindex='0'])")]
  .filter((one) => one.checkVisibility() && one.tabIndex >= 0 && !one.disabled && !reached.has(one))
  .map((one) => one.outerHTML.slice(0, 120))
"""


@pytest.fixture(scope="module")
def watched(chromium, address):
    with watching(chromium, address) as watched:
        yield watched


@pytest.fixture(scope="module")
def shared(watched, address):
    return opened(watched.context(), address, EXAMPLE)


@pytest.fixture
def example(shared):
    """The page with a finished example open, as it is at first."""
    go(shared, EXAMPLE)
    yield shared
    shared.evaluate(AS_AT_FIRST)


@pytest.fixture(scope="module")
def empty(watched, address):
    """The page without a run."""
    page = watched.context().new_page()
    page.goto(address)
    page.wait_for_selector(".scope-examples button")
    page.wait_for_selector("#scenes [aria-label]")
    return page


def unnamed(page) -> list[str]:
    """What can take the focus and has no name that could be read out."""
    session = page.context.new_cdp_session(page)
    found = []
    for node in session.send("Accessibility.getFullAXTree")["nodes"]:
        properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
        name = node.get("name", {}).get("value") or ""
        if properties.get("focusable") and not node.get("ignored") and not name.strip():
            told = session.send("DOM.describeNode", {"backendNodeId": node["backendDOMNodeId"]})["node"]
            if told["nodeName"] not in ("#document", "BODY", "HTML"):
                found.append(f"{told['nodeName']} {told.get('attributes')}")
    return found


def test_every_control_of_an_empty_page_has_a_name(empty):
    assert unnamed(empty) == []
    for part in ("More settings", "Budget and controller"):
        empty.get_by_role("button", name=part).click()
    assert unnamed(empty) == []
    for part in ("More settings", "Budget and controller"):
        empty.get_by_role("button", name=part).click()


def test_every_control_of_an_open_pair_has_a_name(example):
    example.locator(".scope-tables summary").first.click()
    example.get_by_role("button", name="Copy link").click()
    example.wait_for_selector(".scope-link")
    assert unnamed(example) == []
    example.get_by_role("button", name="all keys").click()
    assert unnamed(example) == []


@pytest.mark.parametrize("room", ["Runs", "Guide"])
def test_every_control_of_the_other_rooms_has_a_name(empty, room):
    empty.get_by_role("tab", name=room).click()
    empty.wait_for_selector("#runs table" if room == "Runs" else "#guide-glossary h3")
    assert unnamed(empty) == []
    empty.get_by_role("tab", name="Scope").click()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_of_an_open_pair_stands_out_from_its_ground(example, theme):
    choose(example, theme)
    example.locator(".scope-tables summary").first.click()
    example.get_by_role("button", name="Copy link").click()
    example.wait_for_selector(".scope-word.scope-wrong")
    check_contrasts(example)
    example.get_by_role("button", name="all keys").click()
    check_contrasts(example)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_of_an_empty_page_stands_out(empty, watched, theme):
    choose(empty, theme)
    empty.evaluate("(text) => { location.hash = text }", f"a=nothing-of-that-name-{theme}")
    empty.wait_for_selector(".scope-notice:not([hidden])")
    empty.wait_for_selector(".scope-examples button")
    check_contrasts(empty)
    choose(empty, "light")
    empty.get_by_role("button", name="Dismiss").click()
    excuse_refusals(watched)


def choose(page, theme: str) -> None:
    """Dark and light as Gradio switches them."""
    page.evaluate("(theme) => document.body.classList.toggle('dark', theme === 'dark')", theme)
    page.wait_for_timeout(300)


def check_contrasts(page) -> None:
    found = page.evaluate(CONTRASTS)
    assert len(found) > 20
    assert {text: ratio for text, ratio in found if ratio < LEAST_CONTRAST} == {}


def test_a_refresh_is_explained_and_shared_with_few_keys(watched, address):
    """From an empty page: open the example, find the first difference, explain a refresh, copy the link."""
    page = watched.context().new_page()
    page.goto(address)
    page.wait_for_selector(".scope-examples button")
    presses = ["Tab", "Enter", "Enter"]  # past the form, to the example, open it
    for key in presses:
        page.keyboard.press(key)
    page.wait_for_function("rcrScope.steps.a > 0 && rcrScope.steps.b > 0 && rcrScope.state.step > 0")
    a, b = (page.evaluate(f"rcrScope.text('{which}')") for which in "ab")
    assert a != b
    page.wait_for_selector(".scope-word.scope-current.scope-differs")  # it opens at the first difference
    assert page.locator(".scope-words").first.locator(".scope-differs").first.get_attribute("aria-current")
    presses += ["ArrowDown", ".", "l"]  # a layer, its next refresh, the link
    for key in presses[3:]:
        page.keyboard.press(key)
    page.wait_for_function("document.querySelector('.scope-link').value")
    assert page.locator(".scope-why").first.inner_text().startswith("Layer 0 refreshed: drift ")
    link = page.locator(".scope-link").input_value()
    assert page.evaluate("rcrScope.fragment") in link
    assert page.locator(".scope-copied").inner_text().startswith("copied")
    print(f"\n{len(presses)} presses (bar {MOST_PRESSES})")
    assert len(presses) <= MOST_PRESSES


def test_tab_goes_through_everything_and_out_again(example):
    """No control holds the focus, each shows that it has it, and none is left out."""
    for _ in range(200):
        example.keyboard.press("Tab")
        now = example.evaluate(REACHED)
        assert now["seen"] or not now["ours"], now["html"]
        if now["again"]:
            break
    else:
        pytest.fail("the focus does not come round")
    assert example.evaluate(MISSED) == []


def test_the_list_of_keys_gives_the_focus_back(example):
    example.get_by_role("button", name="next refresh").focus()
    example.keyboard.press("?")
    assert example.locator("dialog[open]").count() == 1
    example.keyboard.press("Escape")
    assert example.locator("dialog[open]").count() == 0
    assert example.evaluate("document.activeElement.ariaLabel") == "next refresh"


def test_sliders_and_the_step_box_work_by_keyboard(example):
    example.get_by_label("opacity of the overlay").focus()
    example.keyboard.press("ArrowLeft")
    assert example.evaluate("[rcrScope.state.opacity, rcrScope.state.step]") == [0.79, 60]
    example.get_by_label("first shown step").focus()
    example.keyboard.press("ArrowRight")
    assert example.evaluate("rcrScope.state.range[0]") == 1
    example.keyboard.press("g")
    example.keyboard.type("17\n")
    example.keyboard.press("ArrowRight")
    assert example.evaluate("rcrScope.state.step") == 18


def test_a_step_is_said_once_it_has_come_to_rest(watched, address, store):
    trace = made_trace("square")
    page = opened(owners_context(watched, address), address, f"a={hold(store, trace).id}&f=0&s=2")
    page.wait_for_timeout(800)
    page.evaluate(SPOKEN)
    page.locator(".scope-range").focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(1000)
    said = page.evaluate("said")
    assert len(said) >= 1 and all(late - early >= 300 for early, late in zip(said, said[1:], strict=False))
    share = truths.percent(truths.refresh_share(trace, 14))
    word = trace.meta.token_text[14].strip() or "⏎"
    text = f"step 14 of {N - 1}, A: token “{word}”, {share} of layers refreshed"
    assert page.locator(".scope-spoken").inner_text() == text
    assert page.locator(".scope-range").get_attribute("aria-valuetext") == text
    assert page.locator(".scope-spoken").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_by_itself_for_whom_it_should_not(example, motion):
    example.emulate_media(reduced_motion=motion)
    moving = """() => {
      document.querySelector(".scope-status").classList.add("scope-live");
      return document.getAnimations().filter(({ effect }) => effect.target.closest(".scope")).length;
    }"""
    assert (example.evaluate(moving) == 0) == (motion == "reduce")
