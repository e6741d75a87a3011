"""Scripts share a server fairly: what one address starts counts together, and files do not pile up."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.errors import StoreFullError
from rcr_core.runs import RunStore, StoreLimits
from rcr_core.serving import Form, Scripts, Workbench
from rcr_core.serving.scripts import FILES
from rcr_core.trace import read_trace

PICTURE = str(EXAMPLES_FOLDER / "1-four-objects.png")
HERE, THERE = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def scripts_on():
    """`scripts_on(store)`: endpoints whose model is never loaded, so that what they start waits for it."""
    stores = []

    def make(store: RunStore) -> Scripts:
        stores.append(store)
        return Scripts(Form(Workbench(store=store)))

    yield make
    for store in stores:
        store.close()


def start(scripts, address):
    return scripts.start_run(address, PICTURE, "", "rcr", {}, 1)


def test_one_address_cannot_take_every_place(scripts_on):
    scripts = scripts_on(RunStore(StoreLimits(per_owner=2, queued=16)))
    started = [start(scripts, HERE) for _ in range(2)]
    with pytest.raises(StoreFullError, match="of your runs are not over"):
        start(scripts, HERE)
    assert start(scripts, THERE)["run"]
    scripts.stop_run(**started[0])
    assert start(scripts, HERE)["run"]


def test_an_address_is_no_permission(scripts_on):
    """Its runs have an owner whose token nobody can work out; the key of each is what reads it."""
    store = RunStore()
    scripts = scripts_on(store)
    run = start(scripts, HERE)
    (owner,) = {live.owner for live in store._runs.values()}
    assert HERE not in owner and len(owner) >= 32
    again = RunStore()
    start(scripts_on(again), HERE)
    assert owner not in {live.owner for live in again._runs.values()}
    assert store.list(HERE) == []
    assert "key" not in scripts.wait_for_run(**run, timeout=0)


def test_fetched_traces_do_not_pile_up(tmp_path, monkeypatch, scripts_on):
    """Each is copied for whoever fetches it; of the originals a few stay."""
    store = RunStore()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scripts = scripts_on(store)
    trace = read_trace(next(EXAMPLES_FOLDER.glob("*-bacon.rcr")))
    runs = [store.add("a-browsers-token", trace, label="one") for _ in range(FILES + 4)]
    fetched = [Path(scripts.fetch_trace(run.id, run.key)) for run in runs]
    assert sum(file.exists() for file in fetched) == FILES
    assert all(file.exists() for file in fetched[-FILES:])
    assert scripts.fetch_trace(runs[-1].id, runs[-1].key) == str(fetched[-1])
    assert read_trace(fetched[-1]).text == trace.text
