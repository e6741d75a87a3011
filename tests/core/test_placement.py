"""Where a model goes: devices, dtypes, spread by accelerate, quantised by bitsandbytes."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest
import torch
from transformers import AutoModelForImageTextToText, Qwen3_5Config, Qwen3_5ForConditionalGeneration

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.captioning import CaptionRequest
from rcr_core.engine import Engine
from rcr_core.errors import LoadError
from rcr_core.models import Placement, load_model, placement
from rcr_core.models.failures import explained
from rcr_core.models.progress import Progress
from rcr_core.policies import make_policy
from rcr_core.settings import Settings
from tests.core.checkpoints import refusal
from tests.core.runs import endless, prompt_for, tokens_of

SMALL = Settings(select=8, window=8, candidates=16)
needs_accelerate = pytest.mark.skipif(find_spec("accelerate") is None, reason="needs accelerate")
needs = pytest.mark.skipif(
    find_spec("accelerate") is None or find_spec("bitsandbytes") is None, reason="needs the two packages"
)


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"device": "cuda:99"}, "no device cuda:99"),
        ({"dtype": "int8"}, "unknown dtype 'int8'"),
        ({"device_map": "balanced"}, "unknown device_map 'balanced'"),
        ({"quantize": "2bit"}, "unknown quantize '2bit'"),
        ({"device_map": "auto", "device": "cpu"}, "device_map auto spreads"),
    ],
)
def test_what_a_machine_cannot_do_is_refused_before_anything_is_read(asked, words):
    refusal("no/such/model", words, **asked)


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has MPS")
def test_a_device_of_another_kind_of_machine():
    refusal("no/such/model", "no device mps", device="mps")


@pytest.mark.parametrize(
    "built, seen, words, hint",
    [
        (None, 0, "built without CUDA", "pytorch.org"),
        ("13.0", 0, "sees no GPU", "driver is too old for CUDA 13.0"),
        ("13.0", 2, "no device cuda:5", "cuda:0 to cuda:1"),
    ],
)
def test_why_there_is_no_gpu_is_told_as_far_as_torch_knows(built, seen, words, hint, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: seen)
    assert hint in refusal("no/such/model", words, device="cuda:5").hint


@pytest.mark.parametrize(
    "asked, missing, command",
    [
        ({"device_map": "auto"}, {"accelerate"}, "pip install accelerate"),
        ({"quantize": "4bit"}, {"accelerate", "bitsandbytes"}, "pip install accelerate bitsandbytes"),
        ({"quantize": "8bit"}, {"bitsandbytes"}, "pip install bitsandbytes"),
    ],
)
def test_a_missing_package_is_named_with_its_command(asked, missing, command, monkeypatch):
    monkeypatch.setattr(placement, "find_spec", lambda name: None if name in missing else name)
    with pytest.raises(LoadError) as caught:
        Placement(**asked).resolved()
    assert caught.value.hint == command
    assert all(name in caught.value.message for name in missing)


@needs_accelerate
def test_a_model_that_accelerate_placed_decodes_the_same(tiny, load):
    plain, spread = load("qwen2_vl"), load_model(tiny("qwen2_vl"), device_map="auto", dtype="float32")
    assert spread.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    inputs = prompt_for(plain).inputs
    for name in ("full", "rcr", "infinigen"):
        expected, found = (
            tokens_of(Engine(loaded.model), inputs, make_policy(name, SMALL), 16)
            for loaded in (plain, spread)
        )
        assert found == expected


@needs_accelerate
def test_weights_that_are_read_from_disk_for_every_token_decode_the_same(tiny, load):
    """Memory for some of the layers: accelerate hooks into every module, and calls `.to` on what passes."""
    plain = load("qwen2_vl")
    spread = AutoModelForImageTextToText.from_pretrained(
        tiny("qwen2_vl"), dtype=torch.float32, device_map="auto", max_memory={"cpu": 300_000}
    )
    assert set(spread.hf_device_map.values()) == {"cpu", "disk"}
    inputs = prompt_for(plain).inputs
    for name in ("full", "rcr"):
        expected, found = (
            tokens_of(Engine(model), inputs, make_policy(name, SMALL), 12) for model in (plain.model, spread)
        )
        assert found == expected


@needs
@pytest.mark.parametrize("quantize", ["4bit", "8bit"])
def test_quantised_weights_that_do_not_fit_are_told_so(quantize, tiny):
    options = Placement(device_map="auto", quantize=quantize).resolved().options
    with (
        pytest.raises(LoadError, match="quantised weights of tiny do not fit") as caught,
        explained("tiny", "weights"),
    ):
        AutoModelForImageTextToText.from_pretrained(tiny("qwen2_vl"), max_memory={"cpu": 300_000}, **options)
    assert "--quantize 4bit" in caught.value.hint


@needs
@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
@pytest.mark.parametrize("quantize", ["4bit", "8bit"])
def test_quantised_weights_decode_through_the_whole_path(quantize, tiny, load):
    loaded = load_model(tiny("llava_next"), device="cpu", dtype="bfloat16", quantize=quantize)
    layer = loaded.model.model.language_model.layers[0].self_attn.q_proj
    assert type(layer).__name__ == {"4bit": "Linear4bit", "8bit": "Linear8bitLt"}[quantize]
    assert any(quantize in note for note in loaded.notes)
    run = endless(loaded).run(prompt_for(loaded), CaptionRequest("rcr", SMALL, max_new_tokens=8))
    assert len(list(run)) == 8
    assert run.trace().refresh_rate > 0


def test_loading_tells_how_far_it_is(sharded):
    heard: list[Progress] = []
    load_model(sharded, device="cpu", report=heard.append)
    assert [told.stage for told in heard[:3]] == ["configuration", "processor", "weights"]
    counted = [told for told in heard if told.total]
    assert counted and all(told.stage == "weights" for told in heard[2:])
    assert [told.done for told in counted] == sorted({told.done for told in counted})
    assert len({told.total for told in counted}) == 1 and counted[-1].done < counted[-1].total


def test_models_that_are_loaded_at_the_same_time_are_whole(tiny):
    """Several threads, several times: what one of them patches must not stay."""
    folders = [MODEL_FOLDER, tiny("llava_next"), tiny("qwen2_vl")]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(3) as threads:
            for loaded in threads.map(lambda folder: load_model(folder, device="cpu"), folders * 4):
                assert not any(parameter.is_meta for parameter in loaded.model.parameters())
    finally:
        sys.setswitchinterval(before)
    assert load_model(MODEL_FOLDER, device="cpu").model.device.type == "cpu"


def test_a_model_of_linear_and_full_attention_is_managed_where_it_has_full(tiny):
    """Qwen3.5: every second layer keeps a state of fixed size, which no policy can select from."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "vocab_size": 300}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "full_attention_interval": 2}
    linear = {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
    widths = {"linear_key_head_dim": 16, "linear_value_head_dim": 16}
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 64}
    config = Qwen3_5Config(text_config=sizes | heads | linear | widths, vision_config=vision)
    model = Qwen3_5ForConditionalGeneration(config).eval()
    engine = Engine(model)
    assert engine.managed_layers(100) == (False, True, False, True)
    ids = torch.randint(0, 300, (1, 60), generator=torch.Generator().manual_seed(1))
    expected = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=12,
        do_sample=False,
        eos_token_id=None,
    )
    inputs = {"input_ids": ids}
    assert tokens_of(engine, inputs, make_policy("full", SMALL), 12) == expected[0, 60:].tolist()
    assert len(tokens_of(engine, inputs, make_policy("rcr", SMALL), 12)) == 12
