"""The results file: nothing that was written is lost, and what is damaged is said."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rcr_core.errors import StudyError
from rcr_core.findings import ResultsFile, Row, read_results
from tests.core.findings_samples import at, made

ROOT = Path(__file__).resolve().parents[2]


def elsewhere(code: str, *arguments: object) -> str:
    """What a second process prints that has this project and the rows of these tests."""
    head = "import sys\nfrom pathlib import Path\nfrom rcr_core.findings import ResultsFile\n"
    head += "from rcr_core.errors import StudyError\nfrom tests.core.findings_samples import made\n"
    command = [sys.executable, "-c", head + code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def written(path, *rows):
    results = ResultsFile(path)
    for row in rows:
        results.add(row)
    results.close()
    return path


def test_a_row_comes_back_as_it_was(tmp_path):
    row = made("rcr", 1, refresh_rate=0.4, refresh_by_layer=[None, 0.4], references=["a ball", "der Ball"])
    assert read_results([written(tmp_path / "results.jsonl", row)]) == [row]


def test_a_row_is_on_the_disk_before_add_returns(tmp_path):
    results = ResultsFile(tmp_path / "results.jsonl")
    results.add(made("rcr", 1))
    assert read_results([tmp_path]) == [made("rcr", 1)]
    results.close()


def test_a_study_resumes_with_what_is_there(tmp_path):
    path = written(tmp_path / "deep" / "results.jsonl", made("rcr", 1), made("rcr", 2))
    again = ResultsFile(path)
    assert again.rows == [made("rcr", 1), made("rcr", 2)]
    assert made("rcr", 2).key in again.keys
    assert not again.add(made("rcr", 2, fidelity=0.1))
    assert again.add(made("rcr", 3))
    again.close()
    assert [row.sample for row in read_results([path])] == ["1", "2", "3"]


def test_a_last_line_that_was_cut_off_is_dropped_and_written_again(tmp_path):
    path = written(tmp_path / "results.jsonl", made("rcr", 1), made("rcr", 2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert [row.sample for row in read_results([path])] == ["1"]
    again = ResultsFile(path)
    assert again.add(made("rcr", 2))
    again.close()
    assert path.read_bytes() == whole


def test_a_cut_within_a_letter_is_a_cut(tmp_path):
    path = written(tmp_path / "results.jsonl", made("rcr", 1), made("rcr", 2, text="größer"))
    data = path.read_bytes()
    path.write_bytes(data[: data.index("ö".encode()) + 1])
    assert [row.sample for row in read_results([path])] == ["1"]
    assert len(ResultsFile(path).rows) == 1


def test_texts_may_hold_any_separator(tmp_path):
    row = made("rcr", 1, text="one\u2028two\x85three\x0cfour\r\nfive")
    path = written(tmp_path / "results.jsonl", row)
    assert ResultsFile(path).rows == [row]
    assert read_results([path]) == [row]


def test_two_studies_merge_and_the_first_result_counts(tmp_path):
    one = written(tmp_path / "a" / "results.jsonl", made("rcr", 1, fidelity=0.5), made("bacon", 1))
    other = written(tmp_path / "b" / "results.jsonl", made("rcr", 1, fidelity=0.6), made("rcr", 2))
    merged = read_results([one, other.parent])
    assert [(row.policy, row.sample, row.fidelity) for row in merged] == [
        ("rcr", "1", 0.5),
        ("bacon", "1", None),
        ("rcr", "2", None),
    ]


def test_a_task_that_is_in_a_file_twice_counts_once(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(
        made("rcr", 1, fidelity=0.5).to_json() + "\n" + made("rcr", 1, fidelity=0.6).to_json() + "\n"
    )
    assert [row.fidelity for row in ResultsFile(path).rows] == [0.5]
    assert [row.fidelity for row in read_results([path])] == [0.5]


def test_a_gzipped_file_reads_alike(tmp_path):
    path = written(tmp_path / "results.jsonl", made("rcr", 1))
    (tmp_path / "results.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert read_results([tmp_path]) == [made("rcr", 1)]


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-12], lambda data: data[:20] + b"\xff" * 8 + data[28:], lambda data: b"no"]
)
def test_a_damaged_gzip_file_is_said(tmp_path, spoil):
    packed = gzip.compress(b"".join(made("rcr", n).to_json().encode() + b"\n" for n in range(20)))
    (tmp_path / "results.jsonl.gz").write_bytes(spoil(packed))
    with pytest.raises(StudyError, match="cannot be read"):
        read_results([tmp_path])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"data": "pict', "line 2 of results.jsonl is not JSON"),
        ("[1, 2]", "line 2 of results.jsonl is no row"),
        ('{"fidelity": NaN}', "line 2 of results.jsonl is not JSON"),
        ('{"some": "thing"}', "version None, this release reads 1"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, said):
    path = tmp_path / "results.jsonl"
    path.write_text(f"{made('rcr', 1).to_json()}\n{line}\n{made('rcr', 2).to_json()}\n")
    for read in (lambda: read_results([path]), lambda: ResultsFile(path)):
        with pytest.raises(StudyError, match=said):
            read()


def test_bytes_that_are_no_text_are_said(tmp_path):
    (tmp_path / "results.jsonl").write_bytes(b"\xff\xfe\n")
    for read in (lambda: read_results([tmp_path]), lambda: ResultsFile(tmp_path / "results.jsonl")):
        with pytest.raises(StudyError, match="cannot be read"):
            read()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, "version 2, this release reads 1"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"settings": ["rho"]}, "'settings' of a row is no dict"),
        ({"tokens": None}, "'tokens' of a row is no list"),
    ],
)
def test_a_foreign_row_is_refused(changes, said):
    values = {**json.loads(made("rcr", 1).to_json()), **changes}
    with pytest.raises(StudyError, match=said):
        Row.from_dict(values)


def test_a_missing_field_is_named_but_not_one_that_may_be_missing():
    values = json.loads(made("rcr", 1).to_json())
    del values["accuracy"]
    assert Row.from_dict(values) == made("rcr", 1)
    del values["tokens"]
    with pytest.raises(StudyError, match="lacks the field 'tokens'"):
        Row.from_dict(values)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(StudyError, match="there is no file"):
        read_results([tmp_path / "nothing.jsonl"])
    with pytest.raises(StudyError, match=r"there is no results\.jsonl in"):
        read_results([tmp_path])
    with pytest.raises(StudyError, match="cannot be written"):
        ResultsFile(tmp_path)


def test_a_row_never_holds_a_number_that_json_has_not(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        made("rcr", 1, fidelity=float("nan")).to_json()


def test_a_key_tells_tasks_apart_and_nothing_else():
    key = made("rcr", 1).key
    assert made("rcr", 1, fidelity=0.3, seconds=9.0, device="cuda").key == key
    assert made("rcr", 1, settings=dict(reversed(at().items()))).key == key
    others = [
        made("rcr", 2),
        made("bacon", 1),
        made("rcr", 1, {"rho": 0.5}),
        made("rcr", 1, prompt="What?"),
        made("rcr", 1, model="other"),
        made("rcr", 1, dtype="float32"),
        made("rcr", 1, weights="decaf"),
        made("rcr", 1, data="others"),
        made("rcr", 1, max_new_tokens=65),
    ]
    assert len({key, *(row.key for row in others)}) == len(others) + 1


def test_one_study_writes_at_a_time_and_the_line_that_it_writes_stays(tmp_path):
    path = tmp_path / "results.jsonl"
    first = ResultsFile(path)
    first.add(made("rcr", 1))
    # As if the first were in the middle of a line.
    begun = path.read_bytes() + b'{"data":'
    path.write_bytes(begun)
    with pytest.raises(StudyError) as caught:
        ResultsFile(path)
    assert caught.value.message == f"another study writes to {path}"
    assert "--out" in caught.value.hint
    assert path.read_bytes() == begun
    first.close()
    second = ResultsFile(path)
    assert [row.sample for row in second.rows] == ["1"]
    assert second.add(made("rcr", 2))
    second.close()


TRIED = """
try:
    ResultsFile(Path(sys.argv[1])).add(made("rcr", 2))
except StudyError as error:
    print(error.message)
"""


def test_a_second_process_waits_its_turn(tmp_path):
    path = tmp_path / "results.jsonl"
    first = ResultsFile(path)
    first.add(made("rcr", 1))
    assert elsewhere(TRIED, path) == f"another study writes to {path}\n"
    # Whoever ends a study may be another thread than the one that began it.
    ending = threading.Thread(target=first.close)
    ending.start()
    ending.join()
    assert elsewhere(TRIED, path) == ""
    assert [row.sample for row in read_results([path])] == ["1", "2"]


def test_a_file_that_could_not_be_opened_is_free_for_the_next(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("[1, 2]\n")
    with pytest.raises(StudyError, match="is no row") as caught:
        ResultsFile(path)
    path.unlink()
    ResultsFile(path).close()
    assert caught.value  # which holds on to the file that failed


FULL_DISK = """
import resource
results = ResultsFile(Path(sys.argv[1]))
results.add(made("rcr", 1))
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
try:
    try:
        results.add(made("rcr", 2, text="ball " * 4000))
    finally:
        results.close()
except StudyError as error:
    print(error.message, [row.sample for row in results.rows])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = ResultsFile(Path(sys.argv[1]))
print([row.sample for row in again.rows], again.add(made("rcr", 2)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as only Unix can")
def test_a_full_disk_is_said_in_words_and_loses_no_row(tmp_path):
    path = tmp_path / "results.jsonl"
    said = elsewhere(FULL_DISK, path).splitlines()
    assert said == [f"{path} cannot be written: File too large ['1']", "['1'] True"]
    assert [row.sample for row in read_results([path])] == ["1", "2"]
