"""Every policy, on a device that is not the host: no operation may mix the two.

No accelerator is needed: the tensors are torch's fake ones, which have shapes, types and devices but no
values, and refuse what a real device would refuse. They stand on two devices of torch's spare backend, as a
model that is too large for one does, in a process of their own, because a backend cannot be taken back.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from rcr_core.bench import random_contest
from rcr_core.engine import Engine, Recorder
from rcr_core.policies import POLICIES, make_policy
from rcr_core.settings import Settings

_setup_privateuseone_for_python_backend("gadget")
contest = random_contest(256, layers=2)
mode = FakeTensorMode()


def moved(tensor, index=0):
    twin = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
    return FakeTensor(mode, twin, torch.device("gadget", index))


def place(model, index):
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                module._parameters[name] = torch.nn.Parameter(moved(value, index), requires_grad=False)
        for name, value in module._buffers.items():
            if value is not None:
                module._buffers[name] = moved(value, index)


def bring(index):
    def one(value):
        if isinstance(value, tuple):
            return tuple(one(part) for part in value)
        return value.to(torch.device("gadget", index)) if isinstance(value, torch.Tensor) else value

    def hook(module, args, kwargs):
        return one(args), {name: one(value) for name, value in kwargs.items()}

    return hook


text = contest.model.model.language_model
place(contest.model, 0)
if int(sys.argv[1]):
    place(text.layers[1], 1)
    # As accelerate does: what a module is called with comes to where its weights are.
    text.layers[1].register_forward_pre_hook(bring(1), with_kwargs=True)
    text.layers[1].self_attn.register_forward_pre_hook(bring(1), with_kwargs=True)
    text.norm.register_forward_pre_hook(bring(0), with_kwargs=True)
inputs = {name: moved(value) for name, value in contest.inputs.items()}
with mode:
    engine = Engine(contest.model)
    for policy in POLICIES:
        for offload in ("none", "masked"):
            settings = Settings(offload=offload, diagnostics=True, update="step", centre=True)
            session = engine.start(inputs, make_policy(policy, settings, observe=True), 8)
            for _ in range(2):
                engine.step(session, engine.choose(session))
            views = session.policy.views
            recorder = Recorder(contest.geometry, contest.length, engine.shape, 32, torch.device("gadget", 0))
            with torch.inference_mode():
                gathered = {layer: view.on(recorder.position.device) for layer, view in views.items()}
                parts = recorder._attention(gathered) | recorder._diagnostics(gathered, False)
            seen = {str(part.device) for part in parts.values()}
            prefix = session.stores[-1].prefix_k.device
            print(policy, offload, session.logits.device, views[1].weights.device, *seen, prefix)
try:
    with mode:
        session.logits + torch.zeros(1)
except Exception as error:
    print("mixing is refused", "device" in str(error))
"""


@pytest.mark.parametrize("second", [0, 1], ids=["one device", "two devices"])
def test_a_decode_step_stays_on_its_device(second):
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(second)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    *runs, refused = done.stdout.splitlines()
    assert refused == "mixing is refused True"
    assert len(runs) == 20
    for line in runs:
        policy, offload, logits, layer, recorded, prefix = line.split()
        assert (logits, layer, recorded) == ("gadget:0", f"gadget:{second}", "gadget:0"), line
        assert prefix == ("cpu" if offload == "masked" and policy != "full" else layer), line
