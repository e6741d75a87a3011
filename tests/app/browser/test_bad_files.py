"""A trace file that cannot be opened is refused, with what is wrong and what to do."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest

from rcr_core.trace import MAX_TRACE_BYTES, trace_bytes
from tests.app.browser.form import expecting
from tests.app.web_samples import sample_trace


def files() -> dict[str, tuple[bytes, str]]:
    whole = trace_bytes(sample_trace(4))
    newer = whole.replace(b'\\"schema\\": \\"1.2\\"', b'\\"schema\\": \\"9.0\\"')
    newer = newer.replace(b'\\"schema\\":\\"1.2\\"', b'\\"schema\\":\\"9.0\\"')
    assert newer != whole
    return {
        "cut": (whole[:-100], "the file is cut short, 100 of"),
        "foreign": (b"PK\3\4 some archive", "this is not a trace file"),
        "forged": (whole.replace(b'"F32"', b'"F64"', 1), "the file is damaged"),
        "newer": (newer, "trace version 9.0 is not known"),
    }


@pytest.mark.parametrize("kind", ["cut", "foreign", "forged", "newer"])
def test_a_trace_file_that_cannot_be_opened_is_refused_in_words(page, watched, tmp_path, kind):
    data, words = files()[kind]
    (tmp_path / f"{kind}.rcr").write_bytes(data)
    page.get_by_role("tab", name="Runs").click()
    with expecting(watched, "status of 415"):
        page.locator("#runs input[type=file]").set_input_files(tmp_path / f"{kind}.rcr")
        card = page.locator("#runs .scope-notice").filter(has_text=f"{kind}.rcr: ")
        assert words in card.inner_text() and card.locator(".scope-notice-hint").inner_text()
    card.get_by_role("button", name="Dismiss").click()


def test_a_trace_file_that_is_too_large_is_refused_before_it_is_sent(address):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    connection.putrequest("POST", "/scope/runs")
    for name, value in (("X-Scope-Owner", "some-browsers-token"), ("Content-Length", MAX_TRACE_BYTES + 1)):
        connection.putheader(name, str(value))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.load(answer) == {
        "error": "the file has more than 536,870,912 bytes",
        "hint": "record fewer steps",
    }
    connection.close()
