"""How the hub's checkpoints of a family differ from what transformers writes today."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from rcr_core.models import load_model, prepare
from tests.core.checkpoints import edit, refusal
from tests.core.runs import picture
from tests.core.tiny import ALL_FAMILIES

FAMILY = pytest.mark.parametrize("family", ALL_FAMILIES)
PROCESSOR = {
    "qwen2_vl": "Qwen2VLProcessor",
    "qwen2_5_vl": "Qwen2_5_VLProcessor",
    "qwen3_vl": "Qwen3VLProcessor",
    "llava": "LlavaProcessor",
    "llava_next": "LlavaNextProcessor",
    "llava_onevision": "LlavaOnevisionProcessor",
    "idefics3": "Idefics3Processor",
    "smolvlm": "SmolVLMProcessor",
    "internvl": "InternVLProcessor",
    "gemma3": "Gemma3Processor",
    "paligemma": "PaliGemmaProcessor",
}
OPTIONS = {
    "llava": ("patch_size", "vision_feature_select_strategy", "num_additional_image_tokens"),
    "llava_next": ("patch_size", "vision_feature_select_strategy", "num_additional_image_tokens"),
    "llava_onevision": ("num_image_tokens", "vision_feature_select_strategy", "vision_aspect_ratio"),
    "idefics3": ("image_seq_len",),
    "smolvlm": ("image_seq_len",),
    "internvl": ("image_seq_length",),
    "gemma3": ("image_seq_length",),
}


def logits(loaded) -> torch.Tensor:
    with torch.no_grad():
        return loaded.model(**prepare(loaded, [picture()], "What?").inputs, logits_to_keep=1).logits


@FAMILY
def test_a_folder_loads(family, load):
    loaded = load(family)
    assert loaded.family == family and type(loaded.processor).__name__ == PROCESSOR[family]
    assert loaded.processor.image_processor.backend == "pil"
    assert not hasattr(loaded.processor, "video_processor") and loaded.max_length == 2048
    assert loaded.has_template == (family != "paligemma")
    assert loaded.stop_ids >= {loaded.tokenizer.eos_token_id}


@FAMILY
def test_a_saved_processor_loads_again(family, load, tmp_path):
    loaded = load(family)
    loaded.processor.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "processor_config.json").read_text())
    assert written["processor_class"] == PROCESSOR[family]
    for name in OPTIONS.get(family, ()):
        assert written[name] == getattr(loaded.processor, name)


@FAMILY
def test_the_layout_of_older_checkpoints_loads(family, broken, load):
    """preprocessor_config.json, chat_template.json, "Fast" image processors, options on their own."""
    folder = broken(family)
    processor = json.loads((folder / "processor_config.json").read_text())
    images = processor.pop("image_processor")
    images["image_processor_type"] += "Fast"
    images["processor_class"] = processor["processor_class"]
    if family == "internvl":
        assert images["crop_to_patches"] is False  # as on the hub; the processor asks for tiles
    if family in OPTIONS:
        (folder / "processor_config.json").write_text(json.dumps(processor))
    else:
        (folder / "processor_config.json").unlink()
    (folder / "preprocessor_config.json").write_text(json.dumps(images))
    if family != "paligemma":
        template = {"chat_template": (folder / "chat_template.jinja").read_text()}
        (folder / "chat_template.json").write_text(json.dumps(template))
        (folder / "chat_template.jinja").unlink()
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer["additional_special_tokens"] = tokenizer.pop("extra_special_tokens")
    tokenizer["extra_special_tokens"] = tokenizer.pop("model_specific_special_tokens", {})
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    old, new = load(family), load_model(folder)
    ids = [prepare(loaded, [picture()], "What?").inputs["input_ids"] for loaded in (old, new)]
    assert torch.equal(*ids)
    expected, found = old.processor, new.processor
    assert type(found).__name__ == type(expected).__name__
    assert found.chat_template == expected.chat_template
    assert found.image_processor.to_dict() == expected.image_processor.to_dict()
    for name in OPTIONS.get(family, ()):
        assert getattr(found, name) == getattr(expected, name) is not None, name


@pytest.mark.parametrize("family", [family for family in ALL_FAMILIES if family != "paligemma"])
def test_a_template_that_only_the_tokenizer_has_is_used(family, broken, load):
    folder = broken(family)
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    edit(folder / "tokenizer_config.json", chat_template=template)
    loaded = load_model(folder)
    assert loaded.has_template and loaded.processor.chat_template == template
    edit(folder / "tokenizer_config.json", chat_template="{{ messages[0]['content'] }}")
    assert not load_model(folder).has_template  # made for text alone


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl"])
def test_a_flat_config_loads(family, broken, load):
    """What Qwen's hub checkpoints hold: the text model's settings beside the others, and an unused window."""
    folder = broken(family)
    written = json.loads((folder / "config.json").read_text())
    text = written.pop("text_config")
    for name in ("model_type", "layer_types"):
        text.pop(name)
    rope = text.pop("rope_parameters")
    flat = {
        "rope_theta": rope["rope_theta"],
        "rope_scaling": {"type": "mrope", "mrope_section": rope["mrope_section"]},
        "use_sliding_window": False,
        "sliding_window": 16,
        "max_window_layers": 2,
    }
    (folder / "config.json").write_text(json.dumps({**written, **text, **flat}))
    found = load_model(folder)
    assert found.max_length == 2048
    assert found.model.config.get_text_config().sliding_window is None
    assert torch.equal(logits(found), logits(load(family)))


def test_gemma_3_with_its_older_names_loads(broken, load):
    folder = broken("gemma3")
    text = json.loads((folder / "config.json").read_text())["text_config"]
    for name in ("layer_types", "_sliding_window_pattern", "rope_parameters"):
        text.pop(name)
    text |= {"sliding_window_pattern": 2, "rope_theta": 1_000_000.0, "rope_local_base_freq": 10_000.0}
    edit(folder / "config.json", text_config=text)
    found = load_model(folder)
    assert found.model.config.get_text_config().layer_types == ["sliding_attention", "full_attention"] * 2
    assert torch.equal(logits(found), logits(load("gemma3")))


@pytest.mark.parametrize(
    "family", ["qwen2_vl", "qwen2_5_vl", "llava_onevision", "internvl", "gemma3", "paligemma"]
)
def test_tied_weights_are_not_missing(family, tiny, load):
    """The small sizes of these families have no output matrix of their own."""
    names = load_file(tiny(family, tie_word_embeddings=True) / "model.safetensors")
    assert not any("lm_head" in name for name in names)
    model = load(family, tie_word_embeddings=True).model
    assert model.lm_head.weight is model.get_input_embeddings().weight


def test_a_text_model_that_caps_its_attention_is_refused(broken):
    """PaliGemma 2 is Gemma 2 with a picture before it."""
    folder = broken("paligemma")
    text = json.loads((folder / "config.json").read_text())["text_config"]
    edit(folder / "config.json", text_config={**text, "model_type": "gemma2", "query_pre_attn_scalar": 16})
    refusal(folder, "gemma2", "attention layers", "not supported")


@pytest.mark.parametrize(
    "family, name",
    [
        ("llava", "patch_size"),
        ("llava_next", "vision_feature_select_strategy"),
        ("llava_onevision", "num_image_tokens"),
    ],
)
def test_a_processor_that_cannot_count_tokens_is_refused(family, name, broken):
    folder = broken(family)
    edit(folder / "processor_config.json", **{name: None})
    refusal(folder, f"lacks {name}", "an image's tokens")
