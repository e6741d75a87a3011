"""The address is the view: it brings back every choice, opens for others with a key, and cannot do harm."""

from __future__ import annotations

import math
from urllib.parse import parse_qsl, quote

import numpy as np
import pytest

from tests.app.browser.opening import OWNER, excuse_refusals, go, hold, opened, owners_context, watching
from tests.app.browser.shapes import SHAPES, H, L, N, made_trace

FIRST = {  # what a view is where nothing was chosen
    "step": 0,
    "layer": "mean",
    "head": "mean",
    "patch": None,
    "picture": 0,
    "map": "attention",
    "scale": "run",
    "colours": "viridis",
    "diff": False,
    "opacity": 0.8,
    "zoom": [1, 0.5, 0.5],
    "range": None,
    "follow": True,
    "speed": 8,
}
LETTERS = dict(zip(FIRST, "slhpimkqcozrfv", strict=True))
NOT_KEPT = {"playing", "hoverStep", "hoverPatch"}  # of the moment
HOSTILE = [
    "a=%3Cimg%20src%3Dx%20onerror%3D%22window.harmed%3D1%22%3E",
    "a=<img src=x onerror='window.harmed=1'>&b=<script>window.harmed=1</script>",
    "a=javascript:window.harmed=1",
    "a=../../etc/passwd&b=..%2F..%2Fruns",
    "a=%zz&b=%",
    "a=" + "x" * 5000,
    "s=1e400&l=1e9&h=-1&p=99999999999999999999",
    "l=NaN&s=NaN&h=Infinity&o=NaN&v=Infinity&z=NaN,NaN,NaN",
    "l=__proto__&h=constructor&f=constructor&c=toString&m=__proto__&k=hasOwnProperty&q=toString",
    "f=2&c=yes&o=-1&v=0&z=0,0,0&r=9,3",
    "z=1e308,1e308,1e308&o=1e-320",
    "z=2,-5,9&r=1&r=2,3,4",
    "z=4,1,0&r=9999999,9999999&s=9999999&l=9999999&h=9999999&p=9999999",
    "p=0x1&s=+1&l=%00&o=%20&v=1e1",
    "i=9999999",
    "i=-1&i=x",
    "s=5&s=6&l=2&l=3&&&===&=&a",
    "#" * 50,
]


@pytest.fixture(scope="module")
def runs(store):
    return {policy: hold(store, made_trace("wide", policy)) for policy in ("rcr", "bacon")}


@pytest.fixture(scope="module")
def ours(chromium, address):
    """Browsers of the runs' owner, and of others."""
    with watching(chromium, address) as watched:
        yield watched


@pytest.fixture(scope="module")
def scope(ours, address, runs):
    pair = f"a={runs['rcr'].id}&b={runs['bacon'].id}"
    return opened(owners_context(ours, address), address, pair)


def random_view(rng) -> dict[str, object]:
    """A state that a person can bring about, each field being the first one or another."""
    low, high = sorted(rng.integers(0, N, 2).tolist())
    view = {
        "step": int(rng.integers(N)),
        "layer": int(rng.integers(L)),
        "head": int(rng.integers(H)),
        "patch": int(rng.integers(SHAPES["wide"].count)),
        "picture": 0,  # the only one
        "map": str(rng.choice(["attention", "missed", "full"])),
        "scale": "step",
        "colours": str(rng.choice(["viridis", "cividis"])),
        "diff": True,
        "opacity": float(rng.random()),
        "zoom": [1 + 15 * float(rng.random()), float(rng.random()), float(rng.random())],
        "range": [low, high],
        "follow": False,
        "speed": int(rng.choice([1, 30, 60])),
    }
    view = {field: FIRST[field] if rng.random() < 0.3 else value for field, value in view.items()}
    if view["follow"]:  # it is at the newest step, and a range has been let go
        view |= {"step": N - 1, "range": None}
    return view


def written(value) -> str:
    """A value as the address has it; floats in the digits that name them exactly."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return ",".join(map(written, value))
    return repr(value) if isinstance(value, float) else str(value)


def fragment_of(view) -> str:
    chosen = {field: value for field, value in view.items() if value != FIRST[field]}
    return "&".join(f"{LETTERS[field]}={quote(written(value))}" for field, value in chosen.items())


def shown(page) -> dict[str, object]:
    state = page.evaluate("rcrScope.state")
    return {field: value for field, value in state.items() if field not in NOT_KEPT}


def test_every_field_goes_through_the_address_and_back(scope, ours, address, runs):
    rng = np.random.default_rng(5)
    other = opened(owners_context(ours, address), address, "")
    ids = {"a": runs["rcr"].id, "b": runs["bacon"].id}
    for _ in range(12):
        view = random_view(rng)
        go(scope, f"a={ids['a']}&b={ids['b']}&{fragment_of(view)}")
        assert shown(scope) == view | ids
        link = scope.evaluate("rcrScope.fragment")
        go(other, link.removeprefix("#"))
        assert shown(other) == shown(scope)
        assert other.evaluate("rcrScope.fragment") == link


def test_what_was_clicked_comes_back_in_a_new_page(scope, address, runs):
    """Numbers that come of a mouse have many digits; all of them are kept."""
    go(scope, f"a={runs['rcr'].id}&b={runs['bacon'].id}")
    box = scope.locator(".scope-pane-box").first.bounding_box()
    scope.keyboard.down("Control")
    scope.mouse.move(box["x"] + 131, box["y"] + 77)
    scope.mouse.wheel(0, -217)
    scope.keyboard.up("Control")
    scope.mouse.click(box["x"] + 200, box["y"] + 90)
    for key in ("g", "Escape", "Home", "ArrowRight", "ArrowDown", "]", "]", "c", "s", "m"):
        scope.keyboard.press(key)
    scope.locator(".scope-range").focus()
    scope.keyboard.press("ArrowRight")
    scope.wait_for_function("location.hash === rcrScope.fragment")
    link = scope.evaluate("location.hash")
    assert {"z", "l", "h", "c", "k", "m", "s", "f"} <= {name for name, _ in parse_qsl(link[1:])}
    again = opened(scope.context, address, link[1:])
    assert shown(again) == shown(scope)
    assert again.evaluate("rcrScope.fragment") == link
    again.close()


def test_a_link_with_keys_opens_for_another_browser(scope, ours, address, runs):
    go(scope, f"a={runs['rcr'].id}&b={runs['bacon'].id}&f=0&s=7&l=3")
    scope.get_by_role("button", name="Copy link").click()
    link = scope.wait_for_function("document.querySelector('.scope-link').value").json_value()
    stranger = opened(ours.context(), address, link.split("#")[1])
    assert shown(stranger) == shown(scope)
    assert stranger.evaluate("rcrScope.text('a')") == runs["rcr"].trace().text
    assert OWNER not in link
    assert stranger.evaluate("localStorage.getItem('rcr-scope-owner')") != OWNER


def test_a_link_without_keys_says_what_is_missing(ours, address, runs):
    stranger = ours.context().new_page()
    stranger.goto(f"{address}#a={runs['rcr'].id}&s=7")
    notice = stranger.locator(".scope-notice")
    notice.wait_for()
    assert runs["rcr"].id in notice.inner_text() and "Copy link" in notice.inner_text()
    assert stranger.evaluate("rcrScope.state.a") is None
    excuse_refusals(ours)


def test_hostile_addresses_do_no_harm(scope, ours, runs):
    ids = f"a={runs['rcr'].id}&b={runs['bacon'].id}"
    for fragment in HOSTILE:
        for text in (fragment, f"{ids}&{fragment}"):
            go(scope, text)
            check_sound(scope)
    rng = np.random.default_rng(9)
    for _ in range(15):
        go(scope, f"{ids}&{random_text(rng)}")
        check_sound(scope)
    excuse_refusals(ours)
    go(scope, f"{ids}&s=3&f=0")
    assert shown(scope) == FIRST | {"a": runs["rcr"].id, "b": runs["bacon"].id, "step": 3, "follow": False}


def random_text(rng) -> str:
    letters = list("slhpimkcozrfv")
    values = [
        "1",
        "-1",
        "1e99",
        "NaN",
        "mean",
        "<b>",
        "%3C",
        "0.5",
        ",",
        "1,2",
        "3,.1,.9",
        "\u202e",
        "🦊",
        "'",
        "{}",
    ]
    parts = [f"{rng.choice(letters)}={''.join(rng.choice(values, 2))}" for _ in range(6)]
    return "&".join(parts)


def check_sound(page) -> None:
    """Every field of the state is one that the page can show, and nothing of the address was run."""
    assert page.evaluate(
        "window.harmed === undefined && !document.querySelector('#views [onerror], #views script')"
    )
    state = shown(page)
    for field, most in {"layer": L, "head": H}.items():
        assert state[field] == "mean" or 0 <= state[field] < most
    assert 0 <= state["step"] < N
    assert state["patch"] is None or 0 <= state["patch"] < SHAPES["wide"].count
    assert state["map"] in ("attention", "missed", "full") and state["scale"] in ("run", "step")
    assert state["diff"] in (True, False) and state["follow"] in (True, False)
    assert 0 <= state["opacity"] <= 1 and 1 <= state["speed"] <= 60
    magnification, x, y = state["zoom"]
    assert 1 <= magnification <= 16 and 0 <= x <= 1 and 0 <= y <= 1
    assert state["range"] is None or 0 <= state["range"][0] <= state["range"][1]
    assert all(math.isfinite(value) for value in state["zoom"])
