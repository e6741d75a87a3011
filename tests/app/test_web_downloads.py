"""A run is taken home whole: the file reads back equal, broken downloads go on, names are harmless."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rcr_core.trace import read_trace, trace_bytes
from tests.app.web_samples import OWNER, PNG, sample_trace, unpack, wait_until
from tests.core.trace_samples import PICTURES, several


@pytest.fixture
def run(store):
    return store.add(OWNER, sample_trace(7), label="5 ten objects")


def fetch(client, run, **sent):
    return client.get(f"/scope/runs/{run.id}/trace.rcr", headers=sent)


def test_the_file_is_the_trace(client, run):
    answer = fetch(client, run)
    assert answer.content == trace_bytes(sample_trace(7))
    assert read_trace(answer.content).meta == sample_trace(7).meta
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="5-ten-objects.rcr.rcr"'
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("0-0", 0, 0), ("10-99", 10, 99), ("100-", 100, None), ("-7", -7, None), ("5-99999999", 5, None)]
    + [("-99999999", 0, None), ("0-", 0, None)],
)
def test_one_range_of_bytes(client, run, asked, first, last):
    whole = trace_bytes(sample_trace(7))
    answer = fetch(client, run, Range=f"bytes={asked}")
    first = first % len(whole)
    last = len(whole) - 1 if last is None else last
    assert answer.status_code == 206
    assert answer.content == whole[first : last + 1]
    assert answer.headers["content-range"] == f"bytes {first}-{last}/{len(whole)}"
    assert int(answer.headers["content-length"]) == last + 1 - first


def test_a_file_put_together_from_ranges_is_the_file(client, run):
    whole, pieces = trace_bytes(sample_trace(7)), []
    for begin in range(0, len(whole), 1000):
        pieces.append(fetch(client, run, Range=f"bytes={begin}-{begin + 999}").content)
    assert b"".join(pieces) == whole


@pytest.mark.parametrize("asked", ["99999999-", "99999999-999999999", "-0"])
def test_a_range_beyond_the_end_is_refused(client, run, asked):
    answer = fetch(client, run, Range=f"bytes={asked}")
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(trace_bytes(sample_trace(7)))}"
    assert "error" in answer.json()


@pytest.mark.parametrize(
    "asked",
    ["bytes=5-2", "bytes=-", "bytes=0-1,4-5", "items=0-1", "bytes=a-b", "0-1", f"bytes=0-{'9' * 5000}"],
)
def test_what_is_no_single_range_is_answered_whole(client, run, asked):
    answer = fetch(client, run, Range=asked)
    assert answer.status_code == 200
    assert answer.content == trace_bytes(sample_trace(7))


def test_a_file_that_is_held_already_is_not_sent_again(client, run):
    tag = fetch(client, run).headers["etag"]
    for held in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        answer = fetch(client, run, **{"If-None-Match": held})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert fetch(client, run, **{"If-None-Match": '"other"'}).status_code == 200


def test_a_range_of_a_file_that_has_changed_is_answered_whole(client, growing):
    run, script = growing(4, OWNER)
    script.release(2)
    wait_until(lambda: run.steps == 2)
    before = fetch(client, run)
    same = fetch(client, run, **{"Range": "bytes=8-15", "If-Range": before.headers["etag"]})
    assert (same.status_code, same.content) == (206, before.content[8:16])
    script.release(1)
    wait_until(lambda: run.steps == 3)
    after = fetch(client, run, **{"Range": "bytes=8-15", "If-Range": before.headers["etag"]})
    assert after.status_code == 200
    assert read_trace(after.content).steps == 3
    dated = fetch(client, run, **{"Range": "bytes=8-15", "If-Range": "Wed, 21 Oct 2026 07:28:00 GMT"})
    assert dated.status_code == 200


def test_the_tag_changes_when_the_run_ends_without_another_step(client, growing):
    run, script = growing(4, OWNER)
    script.release(2)
    wait_until(lambda: run.steps == 2)
    before = fetch(client, run)
    script.stop()
    wait_until(lambda: run.finished)
    after = fetch(client, run)
    assert read_trace(before.content).meta.stop_reason == ""
    assert read_trace(after.content).meta.stop_reason == "stopped"
    assert before.headers["etag"] != after.headers["etag"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("my picture", "my-picture.rcr.rcr"),
        ("../../etc/passwd", "etc-passwd.rcr.rcr"),
        ('a";\r\nSet-Cookie: x=1', "a-Set-Cookie-x-1.rcr.rcr"),
        ("猫", "run.rcr.rcr"),
        ("", "run.rcr.rcr"),
        (".hidden", "hidden.rcr.rcr"),
        ("5-ten-objects.rcr.rcr", "5-ten-objects.rcr.rcr"),
        ("<b>bold</b>", "b-bold-b.rcr.rcr"),
        ("x" * 500, "x" * 80 + ".rcr.rcr"),
    ],
)
def test_a_name_on_the_disk_has_harmless_characters_only(client, store, label, name):
    answer = fetch(client, store.add(OWNER, sample_trace(1), label=label))
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'


def test_a_policy_of_a_foreign_file_does_not_reach_the_name_as_it_is(client, store):
    run = store.add(OWNER, sample_trace(1, policy='../"x'), label="odd")
    assert fetch(client, run).headers["content-disposition"] == 'attachment; filename="odd.x.rcr"'


def test_the_picture_is_an_image_and_nothing_else(client, store, run):
    answer = client.get(f"/scope/runs/{run.id}/image")
    assert answer.content == PNG
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-security-policy"] == "default-src 'none'"
    again = client.get(f"/scope/runs/{run.id}/image", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert again.headers["content-security-policy"] == "default-src 'none'"
    without = store.add(OWNER, sample_trace(2, image=b""), label="text only")
    assert client.get(f"/scope/runs/{without.id}/image").status_code == 404


def test_of_several_pictures_the_first_stands_for_the_run(client, store):
    run = store.add(OWNER, several(), label="three")
    assert client.get(f"/scope/runs/{run.id}/image").content == PICTURES[0]
    _, _, arrays = unpack(client.get(f"/scope/runs/{run.id}/steps").content)
    assert arrays["image"].tobytes() == b"".join(PICTURES)
    ends = [0, *arrays["image_end"].tolist()]
    assert [b - a for a, b in zip(ends, ends[1:], strict=False)] == [len(one) for one in PICTURES]


def test_the_picture_of_a_large_run_is_tagged_without_reading_it(client, store):
    """Twenty megabytes, asked for again and again by a page that has them."""
    run = store.add(OWNER, sample_trace(1, image=PNG + bytes(20 << 20)), label="large")
    tag = client.get(f"/scope/runs/{run.id}/image").headers["etag"]
    began = time.perf_counter()
    for _ in range(20):
        answer = client.get(f"/scope/runs/{run.id}/image", headers={"If-None-Match": tag})
        assert answer.status_code == 304
    assert time.perf_counter() - began < 1.0
    other = store.add(OWNER, sample_trace(1), label="another")
    assert client.get(f"/scope/runs/{other.id}/image").headers["etag"] != tag


def test_only_so_many_files_are_packed_at_once(client, run, monkeypatch):
    """Each is in memory as a whole, however small the range that is asked for."""
    at_once, most, lock = 0, 0, threading.Lock()

    def slow(trace):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        with lock:
            at_once -= 1
        return trace_bytes(trace)

    monkeypatch.setattr("rcr_core.web.downloads.trace_bytes", slow)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: fetch(client, run, Range="bytes=0-9"), range(8)))
    assert [answer.status_code for answer in answers] == [206] * 8
    assert most == 2


def test_figures_and_tables_come_by_name(client, run):
    figure = client.get(f"/scope/runs/{run.id}/figures/drift")
    assert figure.json() == {"data": [7], "layout": {}}
    assert figure.headers["content-type"] == "application/json"
    table = client.get(f"/scope/runs/{run.id}/tables/steps.csv")
    assert table.text == "step,word\n0, w0猫\n"
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-disposition"] == 'attachment; filename="5-ten-objects.rcr.steps.csv"'


@pytest.mark.parametrize(
    "address", ["figures/nothing", "figures/__class__", "tables/nothing.csv", "tables/steps"]
)
def test_an_unknown_figure_or_table_is_a_404(client, run, address):
    answer = client.get(f"/scope/runs/{run.id}/{address}")
    assert answer.status_code == 404
    assert "nothing" not in answer.json()["error"]
