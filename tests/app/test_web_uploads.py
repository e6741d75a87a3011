"""Opening a file: a trace becomes a run of this browser, all else is refused, and no claim is believed."""

from __future__ import annotations

import asyncio
import io
import threading

import pytest
from PIL import Image

from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.errors import TraceError
from rcr_core.trace import trace_bytes
from tests.app.conftest import MAX_TRACE_BYTES
from tests.app.web_samples import OWNER, PNG, ScriptedRun, sample_trace, wait_until

SCENE = {"seed": 9001, "grid": 2, "count": 3}
SIDE = 128  # pixels of a scene of two cells a side


def post(client, data, label="opened", **sent):
    return client.post("/scope/runs", params={"label": label}, content=data, headers=sent)


def png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def scene_trace(image: bytes, scene=SCENE, side: int = SIDE):
    return sample_trace(3, image, (side, side), scene=scene, prompt=CAPTION_PROMPT)


def test_a_trace_becomes_a_run_of_this_browser(client, store):
    data = trace_bytes(sample_trace(4))
    answer = post(client, data, "my file")
    told = answer.json()
    assert answer.status_code == 201
    assert (told["label"], told["kind"], told["status"], told["steps"]) == ("my file", "file", "done", 4)
    assert told["mine"] is True and told["public"] is False
    assert store.get(told["id"], OWNER).key == told["key"]
    assert client.get(f"/scope/runs/{told['id']}/trace.rcr").content == data


def test_a_file_sent_in_pieces_without_its_length(client):
    data = trace_bytes(sample_trace(4))
    pieces = (data[at : at + 700] for at in range(0, len(data), 700))
    assert post(client, pieces).status_code == 201


def test_a_file_is_held_against_the_full_run_of_the_same_picture_and_prompt(client, store):
    script = ScriptedRun(6, policy="full")
    full = store.start(OWNER, lambda: script, policy="full")
    script.release(6)
    wait_until(lambda: full.finished)
    told = post(client, trace_bytes(sample_trace(4))).json()
    assert (told["subject"], told["reference"]) == (full.subject, full.id)
    # Words of letters and digits: w0 w1 w3 against w0 w1 w3 w4 w5, so precision 1 and recall 3/5.
    assert told["fidelity"] == pytest.approx(0.75)
    for other in (sample_trace(4, prompt="Déscribe"), sample_trace(4, image=PNG[:-1])):
        told = post(client, trace_bytes(other)).json()
        assert told["subject"] != full.subject
        assert told["reference"] is None and told["fidelity"] is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"not a trace at all", "not a trace"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "not a trace"),
        (trace_bytes(sample_trace(4))[:-10], "cut short"),
        (trace_bytes(sample_trace(4)) + b"x", "follow the last array"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(client, store, data, words):
    answer = post(client, data)
    assert answer.status_code == 415
    assert words in answer.json()["error"]
    assert answer.json()["hint"]
    assert store.list(OWNER) == []


async def asked(routes, *, length: bytes | None = None, body=()):
    """Status and text of POST /scope/runs, straight to its route; `body` is awaited piece by piece."""
    messages, sent = iter(body), []
    route = next(route for route in routes if route.path == "/scope/runs")
    lengths = [] if length is None else [(b"content-length", length)]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/scope/runs",
        "query_string": b"",
        "headers": [(b"x-scope-owner", OWNER.encode()), *lengths],
    }

    async def receive():
        return await next(messages)

    async def send(message):
        sent.append(message)

    await route.app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize("length", [b"200001", b"9" * 17, b"9" * 5000])
def test_a_file_that_says_it_is_too_large_is_refused_before_it_comes(routes, length):
    """There is no body to be asked for."""
    status, answer = asyncio.run(asked(routes(), length=length))
    assert status == 413
    assert b"200,000" in answer


def test_files_of_twice_the_greatest_size_may_come_at_once_and_no_more(routes):
    made = routes()

    async def main():
        last = asyncio.Event()

        async def piece(more: bool):
            if not more:
                await last.wait()
            return {"type": "http.request", "body": b"x" * (MAX_TRACE_BYTES // 2), "more_body": more}

        bodies = [[piece(True), piece(False)] for _ in range(4)]
        first = [asyncio.create_task(asked(made, body=body)) for body in bodies]
        await asyncio.sleep(0.05)  # four halves have come
        fifth = await asked(made, body=[tiny()])
        last.set()
        return fifth, [await task for task in first]

    async def tiny():
        return {"type": "http.request", "body": b"x", "more_body": False}

    fifth, first = asyncio.run(main())
    assert fifth[0] == 503
    assert 415 in [status for status, _ in first]
    assert asyncio.run(asked(made, body=[tiny()]))[0] == 415  # nothing is held any more


def test_a_file_counts_until_it_is_read(routes, monkeypatch):
    """Reading one takes longer than sending it: any number of them might be read at once."""
    made, reading, read = routes(), threading.Semaphore(0), threading.Event()

    def slow(*_):
        reading.release()
        assert read.wait(30)
        raise TraceError("not a trace")

    monkeypatch.setattr("rcr_core.web.uploads.read_trace", slow)

    async def body(size):
        return {"type": "http.request", "body": b"x" * size, "more_body": False}

    async def main():
        first = [asyncio.create_task(asked(made, body=[body(MAX_TRACE_BYTES)])) for _ in range(2)]
        for _ in first:
            assert await asyncio.to_thread(reading.acquire, timeout=30)
        third = await asked(made, body=[body(1)])
        read.set()
        return third, [await task for task in first]

    third, first = asyncio.run(main())
    assert third[0] == 503
    assert [status for status, _ in first] == [415, 415]
    assert asyncio.run(asked(made, body=[body(1)]))[0] == 415  # nothing is held any more


def test_a_file_that_lies_about_its_size_is_cut_off(client, store):
    answer = post(client, (b"x" * 10_000 for _ in range(100)))
    assert answer.status_code == 413
    assert store.list(OWNER) == []


def test_a_file_of_the_greatest_size_is_read(client):
    answer = post(client, b"x" * MAX_TRACE_BYTES)
    assert answer.status_code == 415
    assert post(client, b"x" * (MAX_TRACE_BYTES + 1)).status_code == 413


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("a\r\nb\0c", "abc"),
        ("\u202egnp.exe\u200b", "gnp.exe"),
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("   ", "trace"),
        ("", "trace"),
        ("猫 " * 100, ("猫 " * 40).strip()),
    ],
)
def test_a_label_is_printable_text_and_short(client, label, shown):
    answer = post(client, trace_bytes(sample_trace(1)), label)
    assert answer.json()["label"] == shown
    assert answer.headers["content-type"] == "application/json"


def test_a_scene_is_believed_when_the_picture_shows_it(client):
    scene = make_scene(**SCENE)
    told = post(client, trace_bytes(scene_trace(png(scene.image())))).json()
    assert told["truth"] == {"right": 0, "total": 3}  # none of the three objects is in the text


def changed(image: Image.Image) -> Image.Image:
    """One value of one pixel differs by one."""
    pixel = image.getpixel((3, 100))
    image.putpixel((3, 100), (pixel[0] ^ 1, *pixel[1:]))
    return image


@pytest.mark.parametrize(
    "image",
    [
        png(changed(make_scene(**SCENE).image())),
        png(make_scene(9002, 2, 3).image()),
        png(make_scene(**SCENE).image().convert("P")),
        png(make_scene(**SCENE).image().convert("RGBA")),
        png(make_scene(**SCENE).image().resize((64, 64))),
        png(make_scene(**SCENE).image())[:300],
        b"\x89PNG\r\n\x1a\n" + b"rubbish",
        b"",
    ],
    ids=["one value", "another scene", "palette", "alpha", "smaller", "cut short", "rubbish", "none"],
)
def test_a_scene_that_the_picture_does_not_show_is_not_believed(client, store, image):
    answer = post(client, trace_bytes(scene_trace(image)))
    assert answer.status_code == 201
    assert answer.json()["truth"] is None
    assert store.get(answer.json()["id"], OWNER).scene is None


@pytest.mark.parametrize(
    "scene", [{"seed": 9001, "grid": 9, "count": 3}, {"seed": 9001, "grid": 2, "count": 0}, None]
)
def test_a_scene_that_cannot_be_is_not_believed(client, scene):
    answer = post(client, trace_bytes(scene_trace(png(make_scene(**SCENE).image()), scene)))
    assert answer.status_code == 201
    assert answer.json()["truth"] is None
