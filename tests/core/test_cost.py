"""Costs are those of the reference table, in key vectors per KV head and layer-step."""

import pytest

from rcr_core.cost import Cost, cost, full_scan
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings

DEFAULTS = Settings()  # 32 kept, 128 candidates, rank 8, pages of 16, 32 channels
EXACT = {1024: 1056, 2880: 2912}
SKETCH = {1024: 64, 2880: 180}
INFINIGEN = {1024: 256, 2880: 720}
QUEST = {1024: 128, 2880: 360}


def of(policy: str, prefix: int, rate: float = 1.0, **changes) -> Cost:
    return cost(policy, Settings(**changes) if changes else DEFAULTS, prefix, 128, rate)


@pytest.mark.parametrize("prefix", [1024, 2880])
def test_exact_reselection_reads_every_key_and_the_kept_values(prefix):
    assert of("exact", prefix) == Cost(0, 0, prefix, EXACT[prefix])
    assert full_scan(DEFAULTS, prefix) == EXACT[prefix]


@pytest.mark.parametrize("policy", ["rcr", "threshold"])
@pytest.mark.parametrize("prefix", [1024, 2880])
def test_drift_policies_hold_a_sketch_and_read_at_their_rate(policy, prefix):
    got = of(policy, prefix, rate=0.4)
    assert (got.resident, got.detector) == (SKETCH[prefix], SKETCH[prefix])
    assert got.rescored == pytest.approx(51.2)
    assert got.reads == pytest.approx(64)
    assert of(policy, prefix, rate=0.48).reads == pytest.approx(76.8)
    assert of(policy, prefix, rate=0.0).reads == 0


@pytest.mark.parametrize("prefix", [1024, 2880])
def test_infinigen_holds_a_quarter_of_the_keys(prefix):
    assert of("infinigen", prefix) == Cost(INFINIGEN[prefix], INFINIGEN[prefix], 32, 64)


@pytest.mark.parametrize("policy", ["quest", "arkvale"])
@pytest.mark.parametrize("prefix", [1024, 2880])
def test_page_policies_hold_two_vectors_a_page(policy, prefix):
    assert of(policy, prefix) == Cost(QUEST[prefix], QUEST[prefix], 32, 64)


def test_a_short_last_page_costs_a_whole_digest():
    assert of("quest", 1025).resident == 2 * 65


@pytest.mark.parametrize("page, share", [(8, 4), (4, 2), (32, 16)])
def test_smaller_pages_cost_more_digests(page, share):
    assert of("quest", 1024, page=page).resident == 1024 / share


@pytest.mark.parametrize("policy", ["bacon", "snapkv", "oracle"])
def test_a_single_selection_costs_nothing_more(policy):
    assert of(policy, 1024) == Cost(0, 0, 0, 0)


def test_the_full_cache_holds_and_scores_everything_and_reads_nothing():
    assert of("full", 1024) == Cost(1024, 0, 1024, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_prefix_that_fits_is_kept_like_the_full_cache(policy):
    assert of(policy, 32) == Cost(32, 0, 32, 0)


def test_candidates_rank_and_channels_are_clamped_to_what_there_is():
    got = of("rcr", 64, rate=1.0)
    assert (got.rescored, got.reads) == (64, 96)
    assert of("rcr", 1024, rank=500).resident == 1024
    assert of("infinigen", 1024, channels=500).resident == 1024


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_has_a_cost(policy):
    got = of(policy, 1024, rate=0.5)
    assert min(got.resident, got.detector, got.rescored, got.reads) >= 0


def test_a_full_scan_never_counts_more_values_than_there_are():
    assert full_scan(DEFAULTS, 20) == 40
