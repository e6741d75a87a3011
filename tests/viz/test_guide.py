"""The guide names what the page and the file really have: every term, key, policy and array."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from rcr_core.policies import POLICIES
from rcr_core.settings import Settings
from rcr_core.trace import ARRAYS, SCHEMA, STOP_REASONS, TraceMeta, save_trace
from tests.viz.samples import made_trace
from viz.guide import FOLDER, guide_sections

GUIDE = guide_sections()
FRONT = Path(__file__).resolve().parents[2] / "viz" / "scope"
SHOWN = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", " ": "Space", "Escape": "Esc"}


def glossary() -> dict[str, str]:
    """Term -> text."""
    parts = re.split(r"^### (.+)$", GUIDE["glossary"], flags=re.MULTILINE)
    texts = [re.sub(r"^##? .*", "", text, flags=re.MULTILINE) for text in parts[2::2]]
    return {term: " ".join(text.split()) for term, text in zip(parts[1::2], texts, strict=True)}


def anchor(term: str) -> str:
    return re.sub(r"[^\w-]", "", term.lower().replace(" ", "-"))


def table_rows(text: str) -> list[list[str]]:
    """The cells of every row of a Markdown table, headings and rulers left out."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_every_file_of_the_folder_is_a_section_with_a_title():
    assert list(GUIDE) == ["tour", "glossary", "keys", "limits", "trace-format"]
    assert {path.stem for path in FOLDER.glob("*.md")} == set(GUIDE)
    for text in GUIDE.values():
        assert text.startswith("## ")
        assert "<script" not in text.lower()


def test_every_term_has_one_anchor_and_one_to_three_sentences():
    terms = glossary()
    anchors = [anchor(term) for term in terms]
    assert len(anchors) == len(set(anchors)) == GUIDE["glossary"].count("### ")
    for term, text in terms.items():
        sentences = re.findall(r"[.!?](?=\s|$)", text)
        assert 1 <= len(sentences) <= 3, term
        assert text.endswith("."), term


@pytest.mark.parametrize(
    "term",
    ["KV head", "prefix", "window", "budget", "select", "selected entries", "evicted", "just in, just out"]
    + ["layer-step", "drift", "tau", "trigger", "refresh", "refresh rate", "rho", "gain", "candidates"]
    + ["sketch rank", "missed mass", "attention mass by kind", "uncompressed reference", "fidelity"]
    + ["staleness", "reads", "objects right", "one-shot"],
)
def test_the_glossary_has_the_terms_of_the_page(term):
    assert term in glossary()


def test_the_glossary_has_every_term_that_the_page_links_to():
    source = "\n".join(path.read_text(encoding="utf-8") for path in FRONT.rglob("*.js"))
    ways = (r'\bterm: "([^"]+)"', r'\btermLink\((?:"[^"?]*", )?"([^"?]+)"\)', r'\blabel\("[^"]*", "([^"]+)"')
    linked = {term for way in ways for term in re.findall(way, source)}
    assert len(linked) > 15
    assert {anchor(term) for term in linked} <= {anchor(term) for term in glossary()}


def test_the_glossary_has_every_policy():
    assert set(POLICIES) <= set(glossary())


def test_the_glossary_gives_the_true_defaults():
    settings, terms = Settings(), glossary()
    for term, value in {
        "window": settings.window,
        "select": settings.select,
        "tau0": settings.tau0,
        "rho": settings.rho,
        "gain": settings.gain,
        "sketch rank": settings.rank,
    }.items():
        assert f"({value:g})" in terms[term], term
    assert f"(4 × select, {settings.candidate_count})" in terms["candidates"]
    assert f"({settings.select} + {settings.window})" in terms["budget"]


def test_the_table_of_keys_is_that_of_the_page():
    source = (FRONT / "keys.js").read_text(encoding="utf-8")
    table = source[source.index("export const KEYS") : source.index("\n};")]
    pressed = re.findall(r'^  (?:"(.)"|(\w+)): \[', table, flags=re.MULTILINE)
    names = {SHOWN.get(one or other, one or other) for one, other in pressed}
    assert len(names) == len(pressed) > 20
    listed = [key for row in table_rows(GUIDE["keys"]) for key in re.findall(r"`([^`]+)`", row[0])]
    assert set(listed) - {"Shift"} == names


def test_the_keys_of_the_tour_are_in_the_table():
    listed = set(re.findall(r"`([^`]+)`", GUIDE["keys"]))
    assert set(re.findall(r"`([^`]+)`", GUIDE["tour"])) <= listed


def test_the_tour_has_six_to_eight_numbered_steps():
    numbers = re.findall(r"^(\d+)\. \*\*", GUIDE["tour"], flags=re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, len(numbers) + 1))
    assert 6 <= len(numbers) <= 8


def test_the_trace_format_lists_every_array_as_it_is():
    rows = [row for row in table_rows(GUIDE["trace-format"]) if len(row) == 5]
    described = {row[0].strip("`"): row[1:4] for row in rows}
    assert len(described) == len(rows)
    assert set(described) == set(ARRAYS)
    for name, spec in ARRAYS.items():
        shape = f"[{', '.join(map(str, spec.dims))}]"
        optional = "yes" if spec.optional else ""
        assert described[name] == [" or ".join(spec.dtypes), shape, optional], name


def test_the_trace_format_lists_every_field_of_the_metadata():
    rows = [row for row in table_rows(GUIDE["trace-format"]) if len(row) == 2]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(named) == sorted(spec.name for spec in fields(TraceMeta))
    texts = {row[0]: row[1] for row in rows}
    assert f"such as {SCHEMA}" in texts["`schema`"]
    assert set(filter(None, STOP_REASONS)) == set(re.findall(r"`([^`]+)`", texts["`stop_reason`"]))


@pytest.fixture
def saved(tmp_path):
    trace = made_trace(5)
    save_trace(trace, tmp_path / "run.rcr")
    return trace, tmp_path


def test_the_python_example_reads_a_trace(saved, monkeypatch):
    trace, folder = saved
    monkeypatch.chdir(folder)
    found: dict = {}
    exec(block("python"), found)
    assert found["caption"] == trace.text
    assert found["arrays"].keys() == trace.arrays().keys()
    np.testing.assert_array_equal(found["arrays"]["selected"], trace.selected)
    np.testing.assert_allclose(found["attention"], trace.map_layer / 255 * trace.map_layer_scale[..., None])


@pytest.mark.skipif(
    shutil.which("node") is None, reason="runs the example for browsers in Node.js, which is not here"
)
def test_the_browser_example_reads_a_trace(saved):
    trace, folder = saved
    stand_in = (  # for the fetch of a browser
        'import { readFile } from "node:fs/promises";\n'
        "const fetch = async (name) => new Response(await readFile(name));\n"
    )
    ask = "console.log(JSON.stringify([meta.layers, drift[3 * meta.layers + 2], [...array('selected')]]));\n"
    (folder / "example.mjs").write_text(stand_in + block("js") + ask)
    done = subprocess.run(["node", "example.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    numbers = [4, float(trace.drift[3, 2]), trace.selected.flatten().tolist()]
    assert done.stdout.strip() == str(numbers).replace(" ", "")


def block(language: str) -> str:
    """The code of an example of the guide."""
    return re.search(rf"```{language}\n(.*?)```", GUIDE["trace-format"], flags=re.DOTALL)[1]


def test_every_array_of_a_file_begins_where_a_typed_array_may(saved):
    trace, folder = saved
    data = (folder / "run.rcr").read_bytes()
    body = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:body])
    for name, array in trace.arrays().items():
        assert (body + header[name]["data_offsets"][0]) % array.itemsize == 0, name
