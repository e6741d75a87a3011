"""The bench as a whole: its time budget, what it says of what it left out, and how it is printed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch

from rcr_core.__main__ import main
from rcr_core.bench import SECTIONS, Plan, random_contest, run_bench
from rcr_core.bench.contestants import Entrant
from rcr_core.bench.contests import Contests
from rcr_core.bench.section import Attempts, Budget
from rcr_core.bench.speed import BUNDLED, Pace, turns
from rcr_core.errors import MemoryLimitError
from tests.core.test_bench_sections import PREFIX, small_plan


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


# ---- the budget


def test_a_share_is_of_what_is_left():
    clock = Clock()
    budget = Budget(100.0, clock)
    clock.now = 60.0
    part = budget.share(0.5)
    assert (budget.left, part.left) == (40.0, 20.0)
    clock.now = 130.0
    assert (budget.left, part.left, budget.share(0.5).left) == (-30.0, -50.0, 0.0)


def test_a_unit_that_would_take_too_long_is_left_out():
    clock = Clock()
    said = []
    attempts = Attempts(Budget(10.0, clock), said.append)
    assert attempts.run("short", lambda: 1, expected=9.0) == 1
    clock.now = 5.0
    assert attempts.run("long", lambda: 2, expected=9.0) is None
    assert attempts.run("short again", lambda: 3, expected=4.0) == 3
    assert said == ["short", "short again"]
    assert attempts.left_out == ["long: no time left"]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryLimitError("no room"),
        torch.OutOfMemoryError("CUDA out of memory"),
        torch.AcceleratorError("CUDA error: out of memory"),  # pinned memory
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("MPS backend out of memory (MPS allocated: 8.1 GB, max allowed: 9.07 GB)."),
    ],
)
def test_what_has_no_room_costs_itself_alone(error):
    def work():
        raise error

    attempts = Attempts(Budget(10.0))
    assert attempts.run("large", work) is None and attempts.run("small", lambda: 1) == 1
    assert attempts.left_out == ["large: no memory left"] and not attempts.failed


def test_what_fails_is_told_of_and_the_others_go_on():
    attempts = Attempts(Budget(10.0))
    assert attempts.run("odd", lambda: [][1]) is None and attempts.run("even", lambda: 1) == 1
    assert attempts.failed == ["odd: IndexError: list index out of range"]


def test_turns_end_with_the_time_but_not_before_the_first():
    clock = Clock()

    class Slow(Entrant):
        def enter(self, engine, contest, room):
            return self

        def steps(self, count):
            clock.now += 6.0
            return [6.0 / count] * count

    attempts = Attempts(Budget(10.0, clock))
    contest = random_contest(PREFIX, layers=1)
    found = turns(contest, {"slow": Slow("slow")}, attempts, Pace(5, 2, together=True), "here", 0.0)
    assert found == {"slow": 3.0}
    assert attempts.left_out == ["here: all contestants: 2 of 5 rounds only"]


def test_without_time_every_section_says_what_it_left_out():
    sections = run_bench(small_plan(*SECTIONS, minutes=1e-9))
    assert [section.name for section in sections] == list(SECTIONS)
    for section in sections:
        assert section.left_out == ["model and prompt: no time left"]
        assert not section.figures
        assert section.passed == (section.name != "checks")  # what nobody looked at has not passed


@pytest.mark.parametrize("section", ["checks", "speed"])
def test_a_model_without_room_costs_neither_what_fits_nor_what_was_measured(section, monkeypatch):
    def no_room(contests, prefix):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Contests, "random", no_room)
    plan = replace(small_plan(section), prefixes=(None, PREFIX))
    (found,) = run_bench(plan)
    assert [reason for reason in found.left_out if "no memory left" in reason] == found.left_out != []
    rows = found.figures[0].rows
    assert rows and {row.get("contest", BUNDLED) for row in rows} == {BUNDLED}
    assert found.passed == (section == "speed")


def test_a_section_that_fails_does_not_cost_the_others(monkeypatch):
    def broken(plan, contests, attempts):
        raise RuntimeError("no kernel image is available")

    monkeypatch.setitem(run_bench.__globals__["_WORK"], "speed", broken)
    speed, memory = run_bench(small_plan("speed", "memory"))
    assert speed.failed == ["model and prompt: RuntimeError: no kernel image is available"]
    assert not speed.passed and memory.passed
    assert len(memory.figures[0].rows) == 25  # 8 policies in 3 places, and the uncompressed one


# ---- the command


@pytest.fixture
def small(monkeypatch):
    plan = small_plan()
    monkeypatch.setattr(Plan, "of", classmethod(lambda cls, device: plan))


def test_json_is_one_object_of_plain_numbers(small, capsys):
    assert main(["bench", "--sections", "memory,graph", "--json", "--rounds", "1", "--steps", "2"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert set(found) == {"machine", "sections"}
    assert found["machine"]["device"] == "cpu" and found["machine"]["threads"] == torch.get_num_threads()
    assert list(found["sections"]) == ["memory", "graph"]
    memory = found["sections"]["memory"]
    assert set(memory) == {"name", "figures", "left_out", "failed", "passed", "seconds"}
    rows = memory["figures"]["memory"]["rows"]
    bacon = next(row for row in rows if (row["policy"], row["offload"]) == ("bacon", "masked"))
    assert bacon["decoded"] == bacon["formula"] == 2 * 2 * (32 + 32 + 8) * 64 * 4 * 2
    assert [row["passed"] for row in found["sections"]["graph"]["figures"]["graph"]["rows"][4:]] == [True] * 3
    assert re.search(r"^\[ +\d+\.\d s\] memory: rcr, offload conditional$", err, re.MULTILINE)


def test_markdown_and_terminal_show_the_same_cells(small, capsys):
    assert main(["bench", "--sections", "memory", "--markdown"]) == 0
    markdown = capsys.readouterr().out
    assert main(["bench", "--sections", "memory"]) == 0
    text = capsys.readouterr().out
    rows = [line for line in markdown.splitlines() if line.startswith("| rcr ")]
    assert len(rows) == 3
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 9
        assert any(line.split() == cells for line in text.splitlines()), cells
    assert "| rcr | masked | 0.16 | 0.16 | 0.16 | 0.01 | 0.16 | 0.25 | 0.32 |" in rows


def test_a_check_that_does_not_pass_is_an_exit_code(small, capsys, monkeypatch):
    monkeypatch.setattr("rcr_core.bench.graph.same_tokens", lambda *args: False)
    assert main(["bench", "--sections", "graph", "--rounds", "1"]) == 1
    assert "NO" in capsys.readouterr().out


def test_only_names_a_contest_of_the_step_times(small, capsys):
    assert main(["bench", "--only", "1k", "--rounds", "1", "--steps", "2", "--json"]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert list(sections) == ["speed"]
    steps = sections["speed"]["figures"]["steps"]["rows"]
    assert "1k seconds" in steps[0] and "128 seconds" not in steps[0]


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--device", "cuda:99"], "no device cuda:99"),
        (["--device", "tpu"], "error: unknown device 'tpu'. Hint: use auto, cpu, cuda, cuda:N or mps."),
        (["--sections", "speed,lunch"], "unknown section 'lunch'"),
        (["--minutes", "0"], "0 is no number of minutes above 0"),
    ],
)
def test_what_cannot_be_is_one_line(words, expected, capsys):
    try:
        code = main(["bench", *words])
    except SystemExit as stop:
        code = stop.code
    err = capsys.readouterr().err
    assert code == 2 and expected in err and len(err.splitlines()) == 1


def test_a_gpu_gets_a_model_of_7b_and_every_length():
    plan = Plan.of(torch.device("cuda"))
    build = plan.build
    assert (build.layers, build.heads, build.kv_heads, build.head_dim) == (28, 28, 4, 128)
    assert (build.hidden, build.intermediate, build.dtype) == (3584, 18944, torch.bfloat16)
    assert plan.prefixes == (None, 1024, 4096, 16384, 65536)
    assert plan.minutes == 8 and plan.sections == SECTIONS
