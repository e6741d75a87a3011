"""A study from its tasks to its rows: what rows say, resuming, failures, and what stops it."""

import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from rcr_core.bundled.scenes import make_scene
from rcr_core.captioning import Captioner, CaptionRequest
from rcr_core.errors import SettingsError, StudyError
from rcr_core.findings import ResultsFile, Row
from rcr_core.models import prepare
from rcr_core.settings import Settings
from rcr_core.study.data import DataSet, Sample, open_data
from rcr_core.study.decoding import Decoder, Failure
from rcr_core.study.measure import against
from rcr_core.study.runner import Study
from rcr_core.study.task import Part, plan
from rcr_core.study.variants import SWEEPS, Variant, of_policies, sweep
from rcr_core.study.workers import Done, InlineWorkers, Lost, Workers
from tests.core.study_samples import CAPTION, caption_samples, run_study, without_time

BASE = Settings(select=24, window=16)
POLICIES = ("bacon", "threshold", "rcr", "exact")


@pytest.fixture(scope="module")
def captioner(load):
    return Captioner(load("bundled"))


@pytest.fixture(scope="module")
def rows(captioner, tmp_path_factory):
    """Two scenes under five policies, 40 tokens each."""
    tasks = plan([Part(caption_samples(2), of_policies(POLICIES, BASE))])
    return run_study(captioner, tasks, tmp_path_factory.mktemp("study") / "results.jsonl")


def trace_of(captioner, row):
    """The run of a row, decoded once more without the study."""
    prompt = prepare(captioner.loaded, [make_scene(**row.scene).image()], row.prompt, row.max_new_tokens)
    run = captioner.run(
        prompt,
        CaptionRequest(row.policy, Settings.from_dict(row.settings), max_new_tokens=row.max_new_tokens),
    )
    list(run)
    return run.trace()


def test_every_image_has_a_row_under_every_policy_and_the_reference_comes_first(rows):
    assert [(row.sample, row.policy) for row in rows] == [
        (sample, policy) for sample in ("scene 0", "scene 1") for policy in ("full", *POLICIES)
    ]
    assert len({row.key for row in rows}) == len(rows) == 10


def test_a_row_says_what_the_run_alone_says(captioner, rows):
    for row in rows[:5]:
        trace = trace_of(captioner, row)
        assert row.tokens == trace.tokens.tolist() and row.text == trace.text
        assert row.stop_reason == "length" and row.steps == 40
        if row.policy == "full":
            assert row.refresh_rate is None and row.mean_drift is None
            continue
        fire, drift = trace.fire[1:].astype(float), trace.drift[1:].astype(float)
        assert row.refresh_rate == pytest.approx(fire.mean())
        assert row.refresh_by_layer == pytest.approx(fire.mean(0).tolist())
        assert row.mean_drift == pytest.approx(drift.mean(), rel=1e-6)


def test_exchanged_counts_the_entries_that_came_in(captioner, rows):
    row = next(row for row in rows if row.policy == "rcr")
    trace = trace_of(captioner, row)
    came = 0
    for step in range(1, trace.steps):
        for layer in range(trace.meta.layers):
            for head in range(trace.meta.kv_heads):
                before, now = (set(trace.selection(at, layer)[head]) for at in (step - 1, step))
                came += len(now - before)
    decisions = (trace.steps - 1) * trace.meta.layers * trace.meta.kv_heads
    assert came > 0 and row.exchanged == pytest.approx(came / decisions)


def test_staleness_is_of_the_uncompressed_run(captioner, rows):
    row = rows[0]
    top = trace_of(captioner, row).top_position
    layers = range(top.shape[1])
    expected = [np.mean([top[t, at] == top[t + 1, at] for t in range(1, len(top) - 1)]) for at in layers]
    assert row.staleness == pytest.approx(expected)
    assert all(other.staleness is None for other in rows[1:5])


@pytest.mark.parametrize("update", ["layer", "step"])
@pytest.mark.parametrize("tau0", [0.03, 0.5])
def test_the_controller_identity_gives_the_rate_that_was_realised(captioner, tmp_path, update, tau0):
    base = Settings(select=24, window=16, update=update, tau0=tau0, rho=0.3)
    tasks = plan([Part(caption_samples(1), of_policies(["rcr"], base))])
    row = run_study(captioner, tasks, tmp_path / "results.jsonl")[1]
    assert 0 < row.refresh_rate <= (1 if update == "step" else 0.99)  # once a step, tau moves slowly
    assert row.identity_rate == pytest.approx(row.refresh_rate, abs=1e-5)
    trace = trace_of(captioner, row)
    assert row.tau_end == pytest.approx(float(trace.tau[-1, -1]))
    running = np.cumsum(trace.fire[1:].sum(1)) / (np.arange(1, trace.steps) * trace.meta.layers)
    stays = [step for step in range(1, trace.steps - 9) if (abs(running[step - 1 :] - 0.3) <= 0.05).all()]
    assert row.settles_at == (stays[0] if stays else None)


def test_a_fixed_threshold_has_no_identity_and_ends_where_it_began(rows):
    row = next(row for row in rows if row.policy == "threshold")
    assert row.identity_rate is None and row.settles_at is None
    assert row.tau_end == pytest.approx(BASE.tau0)


def test_fidelity_is_against_the_uncompressed_run_of_the_same_image(rows):
    full = {row.sample: row for row in rows if row.policy == "full"}
    for row in rows:
        reference = full[row.sample]
        different = [at for at in range(40) if row.tokens[at] != reference.tokens[at]]
        assert row.diverges_at == (different[0] if different else -1)
        assert (row.fidelity == 1.0) == (row.tokens == reference.tokens)
        assert 0 <= row.fidelity <= 1


def test_a_text_that_ends_before_the_other_differs_where_it_ends(rows):
    full = rows[0]
    short = replace(full, policy="rcr", tokens=full.tokens[:7], text="".join(full.text.split(" ")[:3]))
    assert against(short, full).diverges_at == 7
    assert against(replace(full, policy="rcr"), full).diverges_at == -1
    empty = replace(full, tokens=[], text="")
    assert against(empty, empty).fidelity == 1.0  # all of nothing is kept


def test_a_study_that_was_stopped_goes_on_where_it_was(captioner, rows, tmp_path):
    path = tmp_path / "results.jsonl"
    tasks = plan([Part(caption_samples(2), of_policies(POLICIES, BASE))])
    results = ResultsFile(path)
    study = Study(tasks, results, InlineWorkers(Decoder(captioner)), lambda progress: stop_at(progress))

    def stop_at(progress):
        if progress.done == 3:
            study.stop()

    progress = study.run()
    results.close()
    assert progress.done == 3 and not progress.failed
    assert len(path.read_text().splitlines()) == 3
    with path.open("a") as file:
        file.write('{"data": "scenes", "sample": "sce')  # it was killed while it wrote the fourth
    seen = []
    again = run_study(captioner, tasks, path, seen.append)
    assert seen[0].resumed == seen[0].done == 3 and seen[-1].done == seen[-1].total == 10
    assert without_time(again) == without_time(rows)
    assert [json.loads(line)["policy"] for line in path.read_text().splitlines()] == [r.policy for r in rows]


def test_what_is_asked_for_twice_is_run_once_where_it_was_asked_first(captioner, tmp_path):
    data, other = caption_samples(1, 4), DataSet("other", caption_samples(1, 3).samples)
    main, swept = of_policies(["bacon"], BASE), sweep(["updates"], ["bacon"], BASE)
    rows = run_study(
        captioner, plan([Part(data, main), Part(other, main), Part(data, swept)]), tmp_path / "r"
    )
    assert [(row.data, row.policy, row.settings["update"]) for row in rows] == [
        ("scenes", "full", "layer"),
        ("scenes", "bacon", "layer"),
        ("other", "full", "layer"),
        ("other", "bacon", "layer"),
        ("scenes", "rcr", "layer"),
        ("scenes", "rcr", "step"),
    ]


def test_a_finished_study_runs_nothing_again(captioner, rows, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(row.to_json() + "\n" for row in rows))
    before = path.read_bytes()
    tasks = plan([Part(caption_samples(2), of_policies(POLICIES, BASE))])
    assert without_time(run_study(captioner, tasks, path)) == without_time(rows)
    assert path.read_bytes() == before


def test_stopping_ends_the_run_under_way_and_keeps_no_half_of_it(captioner, tmp_path):
    results = ResultsFile(tmp_path / "results.jsonl")
    decoder = Decoder(captioner, turn=lambda: Turn())

    class Turn:
        count = 0

        def __enter__(self):
            Turn.count += 1
            if Turn.count == 5:
                study.stop()

        def __exit__(self, *error):
            return None

    tasks = plan([Part(caption_samples(1), of_policies(POLICIES, BASE))])
    study = Study(tasks, results, InlineWorkers(decoder))
    progress = study.run()
    assert progress.done == 0 and results.rows == []
    assert Turn.count < 10
    assert decoder.decode(tasks[0], tasks[0].sample.read()) == Failure("the study was stopped")


def test_a_broken_picture_fails_with_its_image_and_the_others_go_on(captioner, tmp_path):
    good = caption_samples(1).samples[0]
    broken = Sample("broken", CAPTION, lambda: b"no picture", 8)
    seen = []
    data = DataSet("mixed", [broken, good])
    tasks = plan([Part(data, of_policies(["bacon"], BASE))])
    rows = run_study(captioner, tasks, tmp_path / "results.jsonl", seen.append)
    assert [row.sample for row in rows] == ["scene 0", "scene 0"]
    failed = seen[-1].failed
    assert [one.task.variant.policy for one in failed] == ["full", "bacon"]
    assert "is not a picture" in failed[0].why.message or "image" in failed[0].why.message
    assert failed[1].why.message.startswith("its uncompressed run failed")


def test_a_picture_that_is_gone_fails_with_the_words_of_the_data(captioner, tmp_path):
    def gone():
        raise StudyError("the picture of cat.png is gone", "put it back")

    seen = []
    tasks = plan([Part(DataSet("gone", [Sample("cat", CAPTION, gone, 8)]), of_policies(["bacon"], BASE))])
    assert run_study(captioner, tasks, tmp_path / "results.jsonl", seen.append) == []
    assert seen[-1].failed[0].why == Failure("the picture of cat.png is gone", "put it back")


def test_runs_without_a_reference_fail_at_once(captioner, tmp_path):
    seen = []
    tasks = plan([Part(caption_samples(1), [Variant("bacon", BASE)])])
    assert run_study(captioner, tasks, tmp_path / "results.jsonl", seen.append) == []
    assert "no uncompressed run" in seen[-1].failed[0].why.message


class MortalWorkers(Workers):
    """Workers that die over their first so many tasks; a real death is tested with real processes."""

    def __init__(self, workers, deaths):
        self.workers, self.deaths = workers, deaths

    @property
    def identity(self):
        return self.workers.identity

    @property
    def free(self):
        return self.workers.free

    def submit(self, task, picture):
        self.workers.submit(task, picture)

    def collect(self, timeout):
        done = self.workers.collect(timeout)
        if self.deaths:
            self.deaths -= 1
            return [Done(one.task, Lost("it died")) for one in done]
        return done

    def stop(self):
        self.workers.stop()

    def close(self):
        self.workers.close()


@pytest.mark.parametrize("deaths, rows_left", [(2, 2), (3, 0)])
def test_a_task_whose_worker_dies_is_tried_three_times(captioner, tmp_path, deaths, rows_left):
    data = caption_samples(1)
    tasks = plan([Part(data, of_policies(["bacon"], BASE))])
    results = ResultsFile(tmp_path / "results.jsonl")
    study = Study(tasks, results, MortalWorkers(InlineWorkers(Decoder(captioner)), deaths))
    progress = study.run()
    assert len(results.rows) == rows_left
    assert len(progress.failed) == 2 - rows_left
    if progress.failed:
        assert "3 times" in progress.failed[0].why.message


def test_rows_of_another_model_are_no_reference(captioner, rows, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(replace(rows[0], model="another").to_json() + "\n")
    tasks = plan([Part(caption_samples(1), of_policies(["bacon"], BASE))])
    again = run_study(captioner, tasks, path)
    assert [(row.model, row.policy) for row in again] == [
        ("another", "full"),
        ("bundled-captioner", "full"),
        ("bundled-captioner", "bacon"),
    ]
    assert without_time(again[1:]) == without_time(rows[:2])


def test_a_scene_is_graded_and_a_question_scored(captioner, tmp_path):
    tasks = plan([Part(open_data("QUESTIONS:2"), of_policies(["oracle"], Settings()))])
    rows = run_study(captioner, tasks, tmp_path / "answers.jsonl")
    assert [row.accuracy for row in rows] == [1.0] * 4  # short questions are lossless, see the bundled card
    assert all(row.objects is None and row.references == [] for row in rows)
    tasks = plan([Part(open_data("SCENES:1"), of_policies([], Settings()))])
    row = run_study(captioner, tasks, tmp_path / "captions.jsonl")[0]
    assert (row.objects_right, row.objects) == (11, 11) and row.reference_rouge == 1.0


def test_a_picture_that_is_no_scene_has_no_objects(captioner, tmp_path):
    file = io.BytesIO()
    Image.new("RGB", (128, 96), "red").save(file, "PNG")
    sample = Sample("red", CAPTION, file.getvalue, 4, references=("a red field", "nothing"))
    row = run_study(
        captioner, plan([Part(DataSet("own", [sample]), of_policies([], BASE))]), tmp_path / "results.jsonl"
    )[0]
    assert row.objects is None and row.scene is None
    assert row.references == ["a red field", "nothing"] and 0 <= row.reference_rouge <= 1


def test_rows_survive_the_file(rows):
    for row in rows:
        assert Row.from_dict(json.loads(row.to_json())) == row


def test_sweeps_vary_what_they_say_and_hold_each_variant_once():
    base = Settings()
    every = sweep(SWEEPS, ["full", "bacon", "rcr"], base)
    assert len(every) == len(set(every)) and every[0].policy == "full"
    tau0 = [variant.settings.tau0 for variant in sweep(["thresholds"], [], base)[1:]]
    assert tau0 == sorted(tau0) and {0.02, 0.03, 0.15} < set(tau0)  # the paper's range and its default
    assert [v.settings.rho for v in sweep(["rates"], [], base)[1:]] == pytest.approx(
        [0.1 * tenth for tenth in range(1, 9)]
    )
    assert {(v.policy, v.settings.select) for v in sweep(["budgets"], ["bacon", "rcr"], base)[1:]} == {
        (policy, select) for policy in ("bacon", "rcr") for select in (8, 16, 32, 64)
    }
    assert [v.settings.rank for v in sweep(["ranks"], [], base)[1:]] == [4, 8, 16, 32]
    assert all(math.isclose(v.settings.gain, 0.05) for v in every)
    with pytest.raises(SettingsError, match="unknown sweep 'colours'"):
        sweep(["colours"], [], base)
    with pytest.raises(SettingsError, match="unknown policy 'nobody'"):
        of_policies(["nobody"], base)
