"""Workers that are processes, and actors of a local Ray: nothing is lost or doubled when one is killed."""

import multiprocessing
import os
import signal
import threading
import time

import pytest
import ray

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.captioning import Captioner
from rcr_core.errors import LoadError, StudyError
from rcr_core.findings import ResultsFile
from rcr_core.models import Placement
from rcr_core.settings import Settings
from rcr_core.study.runner import Study
from rcr_core.study.task import Part, plan
from rcr_core.study.variants import of_policies
from rcr_core.study.workers import ModelChoice, ProcessWorkers, RayWorkers
from tests.core.study_samples import caption_samples, run_study, without_time

CHOICE = ModelChoice(str(MODEL_FOLDER), Placement("cpu"), threads=1)
# Ray starts half a dozen processes of its own, which a crowded machine may not bear; the summary tells.
RAY = pytest.mark.flaky(reruns=1)
MISSING = ModelChoice("no/such/model", Placement("cpu"), threads=1)


@pytest.fixture(scope="module")
def tasks():
    return plan([Part(caption_samples(3, 24), of_policies(["bacon", "rcr", "exact"], Settings()))])


@pytest.fixture(scope="module")
def expected(load, tasks, tmp_path_factory):
    """The rows of the same study in one process."""
    return run_study(Captioner(load("bundled")), tasks, tmp_path_factory.mktemp("one") / "results.jsonl")


def by_key(rows):
    return sorted(without_time(rows), key=lambda row: row.key)


def run_and_kill(workers, tasks, path, victim):
    """The rows of a study in which a worker is killed after the third row."""
    results = ResultsFile(path)
    killed = []

    def told(progress):
        if progress.done == 3 and not killed:
            killed.append(victim())
            os.kill(killed[0], signal.SIGKILL)

    progress = Study(tasks, results, workers, told).run()
    results.close()
    assert killed
    assert progress.done == progress.total == len(tasks) and not progress.failed
    lines = path.read_text().splitlines()
    assert len(lines) == len(results.rows) == len(tasks)
    return results.rows


def children():
    """Worker processes of this one."""
    return [process.pid for process in multiprocessing.active_children()]


def test_two_processes_give_the_rows_of_one_although_one_is_killed(tasks, expected, tmp_path):
    workers = ProcessWorkers(CHOICE, 2)
    try:
        rows = run_and_kill(workers, tasks, tmp_path / "results.jsonl", lambda: children()[0])
    finally:
        workers.close()
    assert by_key(rows) == by_key(expected)
    assert children() == []


def test_stopping_does_not_wait_for_the_runs_under_way(tasks, tmp_path):
    workers = ProcessWorkers(CHOICE, 2)
    results = ResultsFile(tmp_path / "results.jsonl")
    stopped = []

    def stop(progress):
        if progress.done == 1:
            study.stop()
            stopped.append(time.monotonic())

    study = Study(tasks, results, workers, stop)
    progress = study.run()
    assert time.monotonic() - stopped[0] < 3  # both workers were in the middle of a run
    workers.close()
    results.close()
    assert progress.done == len(results.rows) == 1 and not progress.failed


def test_a_worker_that_dies_while_it_loads_is_replaced_and_the_others_go_on(tasks, expected, tmp_path):
    workers = ProcessWorkers(CHOICE, 2)
    killed = []
    try:
        _ = workers.identity
        loading = [member for member in workers._members if not member.ready]
        for member in loading or workers._members[:1]:
            killed.append(member.handle.process.pid)
            os.kill(killed[-1], signal.SIGKILL)
        results = ResultsFile(tmp_path / "results.jsonl")
        progress = Study(tasks, results, workers).run()
        results.close()
    finally:
        workers.close()
    assert killed and progress.done == len(tasks) and not progress.failed
    assert by_key(results.rows) == by_key(expected)


def test_a_study_can_be_stopped_while_its_workers_load(tasks, tmp_path):
    workers = ProcessWorkers(CHOICE, 2)
    _ = workers.identity
    results = ResultsFile(tmp_path / "results.jsonl")
    study = Study(tasks, results, workers)
    os.kill(children()[0], signal.SIGKILL)  # its successor begins to load
    os.kill(children()[1], signal.SIGKILL)
    threading.Timer(1.0, study.stop).start()
    began = time.monotonic()
    progress = study.run()
    assert time.monotonic() - began < 10 and not progress.failed
    workers.close()
    results.close()
    assert children() == []


def test_a_model_that_no_process_can_load_is_told_in_its_words():
    workers = ProcessWorkers(MISSING, 1)
    try:
        with pytest.raises(LoadError, match="no/such/model"):
            _ = workers.identity
    finally:
        workers.close()


def test_workers_that_die_over_and_over_while_they_load_are_given_up():
    workers = ProcessWorkers(CHOICE, 1)
    seen = set()

    def kill():
        while len(seen) < 3:
            for pid in set(children()) - seen:
                seen.add(pid)
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(StudyError, match="died while it loaded the model, 3 times"):
            _ = workers.identity
    finally:
        killer.join()
        workers.close()
    assert len(seen) == 3


def test_a_cluster_that_does_not_answer_is_told():
    with pytest.raises(StudyError, match="no Ray cluster answers at 127.0.0.1:1"):
        RayWorkers(CHOICE, "127.0.0.1:1", 1)


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster on this machine with room for two actors, as another program might have started it."""
    found = ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield found.address_info["gcs_address"]
    ray.shutdown()


@RAY
def test_two_actors_give_the_rows_of_one_process_although_one_is_killed(cluster, tasks, expected, tmp_path):
    workers = RayWorkers(CHOICE, cluster, 2)

    def victim():
        actor = next(member.handle.actor for member in workers._members if member.task is None)
        return ray.get(actor.__ray_call__.remote(lambda itself: os.getpid()))

    try:
        rows = run_and_kill(workers, tasks, tmp_path / "results.jsonl", victim)
    finally:
        workers.close()
    assert by_key(rows) == by_key(expected)
    assert ray.is_initialized()  # it is somebody else's


@RAY
def test_an_actor_without_room_waits_while_the_other_works(cluster, tasks, expected, tmp_path):
    workers = RayWorkers(CHOICE, cluster, 3)
    results = ResultsFile(tmp_path / "results.jsonl")
    try:
        progress = Study(tasks, results, workers).run()
        assert sum(member.ready for member in workers._members) <= 2
    finally:
        workers.close()
        results.close()
    assert progress.done == len(tasks) and by_key(results.rows) == by_key(expected)


@RAY
def test_a_model_that_no_actor_can_load_is_told_in_its_words(cluster):
    workers = RayWorkers(MISSING, cluster, 1)
    try:
        with pytest.raises(LoadError, match="no/such/model"):
            _ = workers.identity
    finally:
        workers.close()
