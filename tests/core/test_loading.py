"""Loading real folders in hub layout."""

import json
import shutil

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file

from rcr_core.models import load_model
from tests.core.checkpoints import edit
from tests.core.tiny import VISION_FAMILIES

FAMILY = pytest.mark.parametrize("family", VISION_FAMILIES)


@FAMILY
def test_a_folder_loads(family, tiny, load):
    model = load(family)
    assert (model.family, model.name) == (family, family)
    assert not model.model.training
    assert model.device == torch.device("cpu") and model.dtype == torch.float32
    assert {parameter.dtype for parameter in model.model.parameters()} == {torch.float32}
    assert model.max_length == 2048 and model.has_template
    assert model.tokenizer is model.processor.tokenizer
    assert model.processor.image_processor.backend == "pil"
    stored = load_file(tiny(family) / "model.safetensors")
    text = [
        name for name in stored if name.endswith("layers.3.self_attn.q_proj.weight") and "vis" not in name
    ]
    layer = model.model.model.language_model.layers[3].self_attn
    assert torch.equal(layer.q_proj.weight, stored[text[0]])


@FAMILY
def test_stop_ids_join_generation_config_and_tokenizer(family, load):
    model = load(family)
    names = ["</s>"] if family == "llava_next" else ["<|im_end|>", "<|endoftext|>"]
    assert model.stop_ids == set(model.tokenizer.convert_tokens_to_ids(names))


@pytest.mark.parametrize("asked, expected", [(7, {2, 7}), ([5, 7], {2, 5, 7}), (None, {2})])
def test_stop_ids_take_a_number_a_list_or_nothing(asked, expected, broken):
    """2 is the tokenizer's own </s>."""
    folder = broken("llava_next")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": asked}))
    assert load_model(folder).stop_ids == expected


def test_shards_hold_the_same_model(sharded, load):
    assert len(list(sharded.glob("*.safetensors"))) > 2
    expected = load("qwen2_vl").model.state_dict()
    for name, weight in load_model(sharded).model.state_dict().items():
        assert torch.equal(weight, expected[name]), name


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_dtype_is_chosen(dtype, tiny):
    model = load_model(tiny("llava_next"), device="cpu", dtype=dtype)
    assert model.dtype == getattr(torch, dtype)
    assert {parameter.dtype for parameter in model.model.parameters()} == {getattr(torch, dtype)}


@FAMILY
def test_auto_picks_the_dtype_for_the_device(family, tiny):
    model = load_model(tiny(family))
    assert model.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert model.dtype == (torch.float32 if model.device.type == "cpu" else torch.bfloat16)


def test_what_the_checkpoint_asks_of_decoding_is_noted(load, broken):
    assert load("llava_next").notes == ()
    (note,) = load("qwen2_vl").notes
    assert "repetition_penalty 1.05" in note and "greedy" in note
    folder = broken("llava_next")
    edit(folder / "generation_config.json", do_sample=True, repetition_penalty=1.0)
    (note,) = load_model(folder).notes
    assert "do_sample True" in note and "repetition_penalty" not in note


def test_a_missing_template_is_noted(broken):
    folder = broken("llava_next")
    (folder / "chat_template.jinja").unlink()
    model = load_model(folder)
    assert not model.has_template
    assert len(model.notes) == 1 and "no chat template" in model.notes[0]


def test_the_processor_class_may_go_unnamed(broken, load):
    folder = broken("qwen3_vl")
    edit(folder / "processor_config.json", processor_class=None)
    assert type(load_model(folder).processor).__name__ == "Qwen3VLProcessor"


def test_a_hub_id_loads_from_the_cache(tiny, tmp_path, monkeypatch):
    """The cache's own layout, offline."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--somebody--tiny"
    shutil.copytree(tiny("qwen2_vl"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    model = load_model("somebody/tiny")
    assert (model.name, model.family) == ("somebody/tiny", "qwen2_vl")
