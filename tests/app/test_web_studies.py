"""The routes of the studies: who may ask for what, what a study found, and the files to take home."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import app
from rcr_core.findings import read_results
from rcr_core.findings.overview import sections
from rcr_core.runs import RunStore
from rcr_core.serving import Workbench
from rcr_core.serving.studies import Studies
from rcr_core.study.variants import GRID_BUDGETS, GRID_RATES, RATES, THRESHOLDS
from rcr_core.web import findings
from rcr_core.web.findings import ROW_FIELDS
from rcr_core.web.studies import MAX_PICTURE, StudyRoutes
from tests.app.study_samples import PICTURE, TINY, idle, published
from tests.app.web_samples import OTHER, OWNER, headers, wait_until
from tests.viz.study_samples import made_rows
from viz.study.figures import STUDY_FIGURES, study_figure_json
from viz.study.files import table_csv, table_latex

ROWS = made_rows(4, sweeps=False, data="scenes")
PUBLIC = "study-1"


@pytest.fixture
def studies(tmp_path):
    """One study for everyone, on a model that is never loaded."""
    studies = idle()
    studies.publish(published(tmp_path, ROWS))
    yield studies
    studies.close()


@contextmanager
def served(routes, studies, views=None):
    found = routes(studies=StudyRoutes(studies, views or app.study_views()))
    with TestClient(Starlette(routes=found), headers=headers()) as client:
        yield client


@pytest.fixture
def client(routes, studies):
    with served(routes, studies) as client:
        yield client


def started(client) -> dict:
    answer = client.post("/scope/studies", content=json.dumps(TINY))
    assert answer.status_code == 201
    return answer.json()


# ---- who may ask


def test_the_list_tells_what_there_is_and_what_a_study_may_be(client):
    told = client.get("/scope/studies").json()
    assert [study["label"] for study in told["studies"]] == ["made: 4 scenes, 10 policies"]
    study = told["studies"][0]
    assert (study["public"], study["mine"], study["status"]) == (True, False, "done")
    assert (study["done"], study["total"], study["failed"]) == (40, 40, 0)
    choices = told["choices"]
    assert choices["data"] == ["scenes", "questions", "pictures"]
    assert [one["name"] for one in choices["settings"]] == [
        "select",
        "window",
        "tau0",
        "rho",
        "gain",
        "update",
    ]
    values = {one["name"]: one["value"] for one in choices["settings"]}
    assert (values["select"], values["rho"]) == (64, 0.6)
    runs = {one["name"]: one["runs"] for one in choices["sweeps"]}
    assert runs["thresholds"] == len(THRESHOLDS) and runs["rates"] == len(RATES)
    assert runs["grid"] == len(GRID_BUDGETS) * (1 + len(GRID_RATES))
    assert all(one["help"] for one in choices["sweeps"])


def test_whoever_says_not_who_they_are_gets_nothing(client):
    for path in ("", f"/{PUBLIC}", f"/{PUBLIC}/tables", f"/{PUBLIC}/results.jsonl"):
        answer = client.get(f"/scope/studies{path}", headers={"X-Scope-Owner": ""})
        assert answer.status_code == 400


def test_other_peoples_studies_and_unknown_ones_are_one_and_the_same(client):
    study = started(client)["id"]
    assert client.get(f"/scope/studies/{study}").json()["mine"] is True
    answers = set()
    for name in (study, "nothing"):
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/stop"),
            ("GET", "/tables"),
            ("GET", "/rows"),
            ("GET", "/results.jsonl"),
            ("GET", "/report.html"),
            ("GET", "/figures/0/fidelity"),
            ("GET", "/tables/0/fidelity.csv"),
            ("POST", "/rows/key/open"),
        ):
            answer = client.request(method, f"/scope/studies/{name}{path}", headers=headers(OTHER))
            answers.add((answer.status_code, answer.text))
    assert len(answers) == 1 and answers.pop()[0] == 404
    assert len(client.get("/scope/studies", headers=headers(OTHER)).json()["studies"]) == 1
    # The page that is opened anew finds its study again.
    assert [one["id"] for one in client.get("/scope/studies").json()["studies"]] == [PUBLIC, study]


def test_what_is_for_everyone_can_be_neither_stopped_nor_dropped(client):
    assert client.post(f"/scope/studies/{PUBLIC}/stop").status_code == 403
    assert client.delete(f"/scope/studies/{PUBLIC}").status_code == 403
    assert client.get(f"/scope/studies/{PUBLIC}").status_code == 200


# ---- starting, following, stopping


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"not JSON", 400, "described in JSON"),
        (b"[" * 60_000, 400, "described in JSON"),
        (b"7", 409, "a study must be an object"),
        (b'{"count": 51}', 409, "count must be a whole number in [1, 50], got 51"),
        (b'{"count": NaN}', 409, "count must be a whole number"),
        (b'{"policies": ["magic"]}', 409, "policies names an unknown one: 'magic'"),
        (b'{"pictures": ["gone"], "data": "pictures"}', 409, "a picture is no longer on the server"),
        (b" " * 70_000, 413, "more than 65,536 bytes"),
    ],
)
def test_what_cannot_be_started_is_refused_in_words(client, body, status, words):
    answer = client.post("/scope/studies", content=body)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_one_study_runs_at_a_time(client):
    started(client)
    answer = client.post("/scope/studies", content=json.dumps(TINY), headers=headers(OTHER))
    assert answer.status_code == 429
    assert "another person's study is running" in answer.json()["error"]


def test_a_request_waits_for_news_and_hears_of_the_end(client):
    study = started(client)
    path = f"/scope/studies/{study['id']}"
    began = time.monotonic()
    same = client.get(path, params={"wait": 0.5, "stamp": study["stamp"]}).json()
    assert time.monotonic() - began > 0.4 and same["stamp"] == study["stamp"]
    assert client.post(f"{path}/stop").status_code == 200
    told = client.get(path, params={"wait": 5, "stamp": study["stamp"]}).json()
    assert told["status"] == "stopped" and time.monotonic() - began < 4
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_pictures_come_one_by_one_and_only_pictures(client, studies):
    sent = client.post("/scope/studies/pictures", params={"name": "a\u202eb.png"}, content=PICTURE)
    assert sent.status_code == 201 and sent.json()["name"] == "ab.png"
    assert client.post("/scope/studies/pictures", content=b"words").status_code == 415
    large = client.post("/scope/studies/pictures", content=b"x" * (MAX_PICTURE + 1))
    assert (large.status_code, "16,777,216" in large.json()["error"]) == (413, True)
    path = f"/scope/studies/pictures/{sent.json()['picture']}"
    assert client.delete(path, headers=headers(OTHER)).status_code == 409
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 409


def test_a_study_without_rows_has_found_nothing_yet(client):
    study = started(client)["id"]
    for path in ("tables", "rows", "report.html", "figures/0/fidelity", "tables/0/fidelity.csv"):
        answer = client.get(f"/scope/studies/{study}/{path}")
        assert (answer.status_code, answer.json()["error"]) == (409, "this study has no rows yet")
    assert client.get(f"/scope/studies/{study}/results.jsonl").text == ""


# ---- what was found


def test_the_tables_are_those_of_the_report(client):
    told = client.get(f"/scope/studies/{PUBLIC}/tables").json()
    parts = sections(ROWS, cider=False)
    assert told["rows"] == len(ROWS)
    assert [part["title"] for part in told["sections"]] == [part.title for part in parts]
    table, shown = parts[0].tables[0], told["sections"][0]["tables"][0]
    assert (shown["id"], shown["note"]) == (table.id, table.note)
    heads = [column["head"] for column in shown["columns"]]
    assert heads[:4] == ["policy", "images", "fidelity", "over BACON"]
    assert len(heads) == len(table.columns)
    at = [column["id"] for column in shown["columns"]].index("fidelity")
    for row, cells in zip(table.rows, shown["rows"], strict=True):
        text, ends, value = cells[at]
        mean = row[at]
        if mean is None:
            assert (text, value) == ("–", None)
            continue
        assert abs(value - mean.mean) < 1e-12
        assert abs(float(text) - mean.mean) <= 0.0005 + 1e-9
        low, high = (float(end) for end in ends.strip("[]").split(", "))
        assert abs(low - mean.low) <= 0.0005 + 1e-9 and abs(high - mean.high) <= 0.0005 + 1e-9


def test_each_table_can_be_had_as_csv_and_latex(client):
    table = sections(ROWS, cider=False)[0].tables[0]
    answer = client.get(f"/scope/studies/{PUBLIC}/tables/0/{table.id}.csv")
    assert answer.text == table_csv(table)
    assert len(list(csv.reader(io.StringIO(answer.text)))) == 1 + len(table.rows)
    assert 'filename="scenes-bundled-captioner.fidelity.csv"' in answer.headers["Content-Disposition"]
    assert client.get(f"/scope/studies/{PUBLIC}/tables/0/{table.id}.tex").text == table_latex(table)
    for wrong in ("0/none.csv", f"0/{table.id}.exe", f"99/{table.id}.csv", f"x/{table.id}.csv"):
        assert client.get(f"/scope/studies/{PUBLIC}/tables/{wrong}").status_code == 404


def test_the_figures_are_those_of_the_evidence(client):
    evidence = sections(ROWS, cider=False)[0].evidence
    drawn = 0
    for name in STUDY_FIGURES:
        answer = client.get(f"/scope/studies/{PUBLIC}/figures/0/{name}")
        expected = study_figure_json(name, evidence)
        if expected is None:
            assert (answer.status_code, answer.content) == (204, b"")
        else:
            assert answer.json() == json.loads(expected)
            drawn += 1
    assert drawn >= 3
    assert client.get(f"/scope/studies/{PUBLIC}/figures/0/none").status_code == 404
    last = len(sections(ROWS, cider=False)) - 1  # the paper's numbers, which have no rows to draw
    assert client.get(f"/scope/studies/{PUBLIC}/figures/{last}/fidelity").status_code == 204


def test_the_rows_are_those_of_the_main_comparison_without_the_reference(client):
    told = client.get(f"/scope/studies/{PUBLIC}/rows").json()
    assert told["fields"] == ["section", *ROW_FIELDS]
    rows = [dict(zip(told["fields"], row, strict=True)) for row in told["rows"]]
    expected = {row.key: row for row in ROWS if row.policy != "full"}
    assert {row["key"] for row in rows} == set(expected) and len(rows) == len(expected) == 36
    for row in rows:
        assert row["section"] == 0
        for name in ROW_FIELDS:
            assert row[name] == getattr(expected[row["key"]], name)


def test_the_results_read_back_as_the_rows(client, tmp_path):
    answer = client.get(f"/scope/studies/{PUBLIC}/results.jsonl")
    (tmp_path / "again.jsonl").write_bytes(answer.content)
    assert read_results([tmp_path / "again.jsonl"]) == ROWS


def test_the_report_is_one_file_that_asks_for_nothing(client):
    answer = client.get(f"/scope/studies/{PUBLIC}/report.html")
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.text.lstrip().lower().startswith("<!doctype html")
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']https?://", answer.text)


def test_a_row_cannot_be_opened_before_the_model_is_there(client):
    answer = client.post(f"/scope/studies/{PUBLIC}/rows/{ROWS[1].key}/open")
    assert (answer.status_code, answer.json()["error"]) == (409, "the model is still being loaded")
    unknown = client.post(f"/scope/studies/{PUBLIC}/rows/nothing/open")
    assert "there is no such row" in unknown.json()["error"]


def test_everything_is_computed_once(routes, studies, monkeypatch):
    analysed, drawn, written = [], [], []
    views = app.study_views()
    figures = {"fidelity": lambda evidence: drawn.append(1) or views.figures["fidelity"](evidence)}

    def report(rows):
        written.append(len(rows))
        return "<!doctype html>"

    counting = replace(views, figures=figures, report=report)
    monkeypatch.setattr(
        findings, "sections", lambda rows, **more: analysed.append(len(rows)) or sections(rows, **more)
    )
    with served(routes, studies, counting) as client:
        for owner in (OWNER, OTHER):
            for path in ("tables", "rows", "figures/0/fidelity", "report.html", "tables/0/fidelity.csv"):
                assert client.get(f"/scope/studies/{PUBLIC}/{path}", headers=headers(owner)).is_success
    assert (analysed, drawn, written) == ([len(ROWS)], [1], [len(ROWS)])


# ---- with the model


def test_a_study_goes_from_its_start_to_a_row_in_the_store(routes):
    store = RunStore()
    workbench = Workbench(store=store)
    workbench.load()
    workbench.captioner()
    studies = Studies(workbench)
    asked = {"count": 1, "policies": ["full", "bacon"], "max_new_tokens": 30}
    try:
        with served(routes, studies) as client:
            study = client.post("/scope/studies", content=json.dumps(asked)).json()
            path = f"/scope/studies/{study['id']}"
            wait_until(lambda: client.get(path).json()["status"] == "done", 60)
            found = client.get(f"{path}/rows").json()
            row = dict(zip(found["fields"], found["rows"][0], strict=True))
            opened = client.post(f"{path}/rows/{row['key']}/open").json()
            assert opened["step"] == row["diverges_at"]
            assert {store.get(opened[part], OWNER).policy for part in "ab"} == {"bacon", "full"}
            for name in STUDY_FIGURES:  # whatever a small study has, it is drawn or left out
                assert client.get(f"{path}/figures/0/{name}").status_code in (200, 204)
            assert client.get(f"{path}/report.html").is_success
    finally:
        studies.close()
        store.close()
