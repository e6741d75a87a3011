"""The sketch spans the top right singular vectors of the prefix keys, and is exact at full rank."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from rcr_core.attention_math import evicted_mass
from rcr_core.detector import Sketch, singular_vectors
from tests.core.references import Case, sketch_logits, softmax


def keys_of(case: Case) -> torch.Tensor:
    return torch.from_numpy(case.keys).float()


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_basis_spans_the_top_right_singular_vectors(rank, centre):
    case = Case.random(length=30)
    basis = Sketch.of(keys_of(case), rank, centre).basis.double().numpy()
    for h, keys in enumerate(case.keys):
        right = np.linalg.svd(keys - keys.mean(0) if centre else keys)[2][:rank]
        np.testing.assert_allclose(basis[h].T @ basis[h], np.eye(rank), atol=1e-5)
        np.testing.assert_allclose(basis[h] @ basis[h].T, right.T @ right, atol=1e-4)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_logits_are_those_of_the_reduced_keys(rank, centre):
    case = Case.random(length=30)
    query = case.next_queries[0]
    got = Sketch.of(keys_of(case), rank, centre).logits(torch.from_numpy(query).float())
    for h, g in np.ndindex(query.shape[:2]):
        expected = sketch_logits(case.keys[h], query[h, g], rank, centre)
        np.testing.assert_allclose(got[h, g].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("length", [5, 30])
def test_full_rank_gives_exact_logits(length, centre):
    case = Case.random(length=length)
    query = case.next_queries[0]
    got = Sketch.of(keys_of(case), 99, centre).logits(torch.from_numpy(query).float())
    np.testing.assert_allclose(got.numpy(), np.einsum("hgd,hxd->hgx", query, case.keys), atol=1e-4)


def test_centring_makes_a_far_mean_free():
    """Keys on a line beside the origin: one direction is enough only after the mean is taken out."""
    line = np.outer(np.linspace(-1, 1, 20), [1.0, 0, 0, 0]) + np.array([0, 3.0, 0, 0])
    keys = torch.from_numpy(line).float()[None]
    query = torch.tensor([[[2.0, 1.0, 0, 0]]])
    exact = line @ [2.0, 1.0, 0, 0]
    np.testing.assert_allclose(Sketch.of(keys, 1, True).logits(query)[0, 0].numpy(), exact, atol=1e-5)
    assert np.abs(Sketch.of(keys, 1, False).logits(query)[0, 0].numpy() - exact).max() > 1.0


@pytest.mark.parametrize("centre", [False, True])
def test_drift_at_full_rank_is_the_exact_evicted_mass(centre):
    case = Case.random(length=30)
    query = case.next_queries[0] * case.scale
    logits = Sketch.of(keys_of(case), 8, centre).logits(torch.from_numpy(query).float())
    selected = torch.tensor([[1, 5, 8], [0, 20, 29]])
    drift = evicted_mass(logits.softmax(-1).mean(1), selected, 30).item()
    rows = [softmax(case.keys[h] @ query[h, g]) for h in range(2) for g in range(2)]
    masses = [1 - row[selected[at // 2].numpy()].sum() for at, row in enumerate(rows)]
    assert drift == pytest.approx(np.mean(masses), abs=1e-6)


@pytest.mark.parametrize("rank, prefix, expected", [(3, 30, 3), (99, 30, 8), (8, 5, 5)])
def test_rank_is_clamped_to_what_the_keys_have(rank, prefix, expected):
    sketch = Sketch.of(torch.randn(2, prefix, 8), rank)
    assert sketch.basis.shape == (2, 8, expected)
    assert sketch.keys.shape == (2, expected, prefix)


def test_reduced_keys_have_the_dtype_of_the_prefix_and_the_basis_is_float32():
    sketch = Sketch.of(torch.randn(2, 30, 8).bfloat16(), 4, centre=True)
    assert (sketch.keys.dtype, sketch.basis.dtype, sketch.mean.dtype) == (
        torch.bfloat16,
        torch.float32,
        torch.float32,
    )
    assert sketch.logits(torch.randn(2, 2, 8)).dtype == torch.float32


def test_resident_bytes_count_every_tensor_of_the_sketch():
    keys = torch.randn(2, 30, 8).bfloat16()
    assert Sketch.of(keys, 4).resident_bytes == 2 * 8 * 4 * 4 + 2 * 4 * 30 * 2
    assert Sketch.of(keys, 4, centre=True).resident_bytes == 2 * 8 * 4 * 4 + 2 * 4 * 30 * 2 + 2 * 8 * 4


@pytest.mark.parametrize("place, decomposed", [("cuda", "cuda"), ("mps", "cpu")])
def test_an_operator_that_apple_lacks_runs_on_the_host(place, decomposed):
    """On fake tensors, which have a device but no values: no accelerator is needed."""
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if "eigh" in str(operator):
                seen.append(args[0].device.type)
            return operator(*args, **(kwargs or {}))

    mode = FakeTensorMode()
    rows = FakeTensor(mode, torch.empty(2, 30, 8, device="meta"), torch.device(place, 0))
    with mode, Watch():
        found = singular_vectors(rows)
    assert (found.device.type, found.shape) == (place, (2, 8, 8))
    assert seen == [decomposed]
