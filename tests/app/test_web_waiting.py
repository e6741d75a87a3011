"""A page that waits for news hears of it at once, and as many pages as like may wait."""

from __future__ import annotations

import asyncio
import time

import httpx
from starlette.applications import Starlette

from tests.app.web_samples import OWNER, headers, sample_trace, unpack, wait_until


def asked_together(routes, ask):
    """Run `ask(http)` on one event loop, where every request shares the loop with the others."""

    async def main():
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://page", headers=headers(), timeout=20
        ) as http:
            return await ask(http)

    return asyncio.run(main())


def test_waiting_answers_when_a_step_comes(routes, growing):
    run, script = growing(3, OWNER)
    script.release(1)
    wait_until(lambda: run.steps == 1)

    async def ask(http):
        waiting = asyncio.create_task(http.get(f"/scope/runs/{run.id}/steps", params={"from": 1, "wait": 10}))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        began = time.monotonic()
        script.release(1)
        answer = await waiting
        return time.monotonic() - began, unpack(answer.content)

    took, (_, state, arrays) = asked_together(routes(), ask)
    assert took < 2  # at once, not after the ten seconds
    assert (state["from"], state["to"]) == (1, 2)
    assert arrays["tokens"].tolist() == [101]


def test_many_that_wait_hold_no_thread(routes, growing):
    """Far more than the pool has threads (40), while a figure is drawn in one of those."""
    run, script = growing(2, OWNER)
    script.release(1)
    wait_until(lambda: run.steps == 1)

    async def ask(http):
        steps = {"from": 1, "wait": 10}
        waiting = [
            asyncio.create_task(http.get(f"/scope/runs/{run.id}/steps", params=steps)) for _ in range(120)
        ]
        await asyncio.sleep(0.2)
        began = time.monotonic()
        figure = await http.get(f"/scope/runs/{run.id}/figures/drift")
        drawn = time.monotonic() - began
        assert not any(task.done() for task in waiting)
        script.release(1)
        return figure, drawn, await asyncio.gather(*waiting)

    figure, drawn, answers = asked_together(routes(), ask)
    assert figure.json()["data"] == [1]
    assert drawn < 2
    assert {unpack(answer.content)[1]["to"] for answer in answers} == {2}


def test_waiting_ends_after_its_time(routes, growing):
    run, script = growing(2, OWNER)
    script.release(1)
    wait_until(lambda: run.steps == 1)

    async def ask(http):
        began = time.monotonic()
        answer = await http.get(f"/scope/runs/{run.id}/steps", params={"from": 1, "wait": 0.4})
        return time.monotonic() - began, unpack(answer.content)[1]

    took, state = asked_together(routes(), ask)
    assert 0.4 <= took < 2
    assert (state["from"], state["to"], state["status"]) == (1, 1, "decoding")


def test_waiting_answers_when_the_run_is_stopped(routes, growing):
    run, script = growing(3, OWNER)
    script.release(1)
    wait_until(lambda: run.steps == 1)

    async def ask(http):
        waiting = asyncio.create_task(http.get(f"/scope/runs/{run.id}/steps", params={"from": 1, "wait": 10}))
        await asyncio.sleep(0.1)
        await http.post(f"/scope/runs/{run.id}/stop")
        script.release(1)  # the step during which it was stopped
        states = [unpack((await waiting).content)[1]]
        while states[-1]["status"] == "decoding":
            following = {"from": states[-1]["to"], "wait": 10, "stamp": states[-1]["stamp"]}
            states.append(
                unpack((await http.get(f"/scope/runs/{run.id}/steps", params=following)).content)[1]
            )
        return states[-1]

    began = time.monotonic()
    state = asked_together(routes(), ask)
    assert time.monotonic() - began < 5
    assert (state["status"], state["stop_reason"]) == ("stopped", "stopped")


def test_nobody_waits_for_a_run_that_has_ended(client, store):
    run = store.add(OWNER, sample_trace(7), label="seven")
    began = time.monotonic()
    answer = client.get(f"/scope/runs/{run.id}/steps?from=7&wait=10")
    assert unpack(answer.content)[1]["status"] == "done"
    assert time.monotonic() - began < 2


def test_a_page_that_missed_a_change_is_told_at_once(client, growing):
    """Between two requests the run left the queue: the stamp that the page sends back is an old one."""
    run, script = growing(2, OWNER)
    script.release(1)
    wait_until(lambda: run.steps == 1)
    began = time.monotonic()
    answer = client.get(f"/scope/runs/{run.id}/steps?from=1&wait=10&stamp=queued.1")
    assert time.monotonic() - began < 2
    assert unpack(answer.content)[1]["status"] == "decoding"


def test_waiting_ends_when_the_browser_is_gone(routes, growing):
    run, _ = growing(2, OWNER)
    route = next(route for route in routes() if route.path.endswith("/steps"))
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/scope/runs/{run.id}/steps",
        "path_params": {"id": run.id},
        "query_string": b"from=0&wait=10",
        "headers": [(b"x-scope-owner", OWNER.encode())],
    }

    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    async def send(message):
        pass

    wait_until(lambda: run.status == "prefill")
    began = time.monotonic()
    asyncio.run(asyncio.wait_for(route.app(scope, receive, send), 9))
    assert time.monotonic() - began < 2
