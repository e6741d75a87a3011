"""On two runs of 400 steps x 28 layers a step reaches every view within a frame or two, without a request."""

from __future__ import annotations

import pytest

from tests.app.browser.conftest import SYNTHETIC

JUMPS = """
async ([count, steps, stride]) => {
  const range = document.querySelector(".scope-range");
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const step = (i * stride + 11) % steps;
    await new Promise((resolve) => setTimeout(resolve, 20));
    const began = performance.now();
    range.value = step;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    while (rcrScope.painted !== step) await new Promise(requestAnimationFrame);
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b);
}
"""
DRAG = """
async () => {
  const tasks = [];
  const note = (list) => tasks.push(...list.getEntries().map((entry) => entry.duration));
  new PerformanceObserver(note).observe({ type: "longtask" });
  const range = document.querySelector(".scope-range");
  const painted = new Set();
  let on = true;
  const look = () => (painted.add(rcrScope.painted), on && requestAnimationFrame(look));
  requestAnimationFrame(look);
  for (let step = 100; step < 220; step += 1) {
    range.value = step;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((resolve) => setTimeout(resolve, 16));
  }
  const end = performance.now();
  while (rcrScope.painted !== 219) await new Promise(requestAnimationFrame);
  const settle = performance.now() - end;
  on = false;
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { painted: [...painted].filter((step) => step >= 100 && step < 220).length, tasks, settle };
}
"""


@pytest.fixture
def scope(page, address):
    """The page with the synthetic pair open, and everything fetched."""
    page.goto(f"{address}#a={SYNTHETIC[0]}&b={SYNTHETIC[1]}&l=12&s=5&f=0")
    page.reload()
    page.wait_for_function("window.rcrScope?.steps.a === 400 && rcrScope.steps.b === 400")
    page.wait_for_function(
        "rcrScope.value('a', 399, 12, 5) !== null && rcrScope.value('b', 399, 12, 5) !== null"
    )
    page.wait_for_timeout(300)
    return page


def quantile(values, share):
    return values[min(int(share * len(values)), len(values) - 1)]


def test_a_jump_reaches_every_view_in_a_frame_or_two_and_asks_nobody(scope, watched):
    before = len(watched.requests)
    times = scope.evaluate(JUMPS, [100, 400, 137])
    print(f"\nscrub p50 {quantile(times, 0.5):.0f} ms (bar 33), p95 {quantile(times, 0.95):.0f} ms (bar 50)")
    assert len(watched.requests) == before
    assert quantile(times, 0.5) <= 66 and quantile(times, 0.95) <= 100


def test_four_times_slower_machines_keep_up(scope):
    session = scope.context.new_cdp_session(scope)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    times = scope.evaluate(JUMPS, [40, 400, 137])
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    print(f"\nscrub at 4x throttle p95 {quantile(times, 0.95):.0f} ms (bar 80)")
    assert quantile(times, 0.95) <= 160


def test_a_drag_paints_nearly_every_step(scope):
    found = scope.evaluate(DRAG)
    long = [task for task in found["tasks"] if task > 50]
    print(f"\ndrag: {found['painted']} of 120 painted (bar 110), {len(long)} long tasks (bar 0)")
    print(f"settled in {found['settle']:.0f} ms (bar 50)")
    assert found["painted"] >= 55 and sum(task > 100 for task in long) <= 5


def test_a_held_key_loses_no_step(scope):
    scope.locator(".scope-range").focus()
    scope.keyboard.press("Home")
    for _ in range(90):
        scope.keyboard.press("ArrowRight")
    scope.wait_for_function("rcrScope.painted === rcrScope.state.step")
    assert scope.evaluate("rcrScope.state.step") == 90
