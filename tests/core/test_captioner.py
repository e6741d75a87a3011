"""The bundled captioner: what ships, what it reads, and that training goes on where it stopped."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoTokenizer

from rcr_core.bundled.batches import IGNORE, BatchMaker, patches, token_labels
from rcr_core.bundled.captioner import MODEL_FOLDER, PATCH, build_processor, build_tokenizer
from rcr_core.bundled.evaluate import evaluate
from rcr_core.bundled.grading import grade
from rcr_core.bundled.scenes import ATTRIBUTES, CAPTION_PROMPT, make_scene
from rcr_core.bundled.train import main as train
from rcr_core.captioning import Captioner, CaptionRequest
from rcr_core.models import prepare


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def by_the_processor(tokenizer, scene, prompt, answer):
    """Inputs and text of one turn as the real processor makes them."""
    messages = [
        {
            "role": "user",
            "content": [{"type": "image", "image": scene.image()}, {"type": "text", "text": prompt}],
        },
        {"role": "assistant", "content": answer},
    ]
    processor = build_processor(tokenizer)
    return processor.apply_chat_template(messages, tokenize=True, return_dict=True, return_tensors="pt")


@pytest.mark.parametrize("grid", [1, 3, 5])
def test_training_batches_equal_what_the_processor_makes(grid, tokenizer):
    scenes = [make_scene(seed, grid) for seed in range(3)]
    maker = BatchMaker(tokenizer)
    turns = [[(CAPTION_PROMPT, scene.caption)] for scene in scenes]
    batch = maker._batch(scenes, turns)
    cells = (grid * 4) ** 2
    for index, scene in enumerate(scenes):
        real = by_the_processor(tokenizer, scene, CAPTION_PROMPT, scene.caption)
        length = real["input_ids"].shape[1] - 1  # the template ends with a line break that is never predicted
        assert torch.equal(batch.inputs["input_ids"][index, :length], real["input_ids"][0, :length])
        own = batch.inputs["pixel_values"][index * cells : (index + 1) * cells]
        torch.testing.assert_close(own, real["pixel_values"], atol=1e-5, rtol=0)
        assert batch.inputs["image_grid_thw"][index].tolist() == real["image_grid_thw"][0].tolist()


def test_targets_are_the_answer_and_its_end_and_nothing_else(tokenizer):
    scenes = [make_scene(seed) for seed in range(2)]
    maker = BatchMaker(tokenizer)
    batch = maker.captions(scenes, np.random.default_rng(0))
    for row, scene in zip(batch.targets, scenes, strict=True):
        said = maker.tokenizer.decode(row[row != IGNORE])
        assert said == scene.caption + "<|im_end|>"
        where = (row != IGNORE).nonzero()[:, 0]
        ids = batch.inputs["input_ids"][scenes.index(scene)]
        assert torch.equal(ids[where + 1], row[where])


def test_questions_are_turns_of_one_conversation(tokenizer):
    scene = make_scene(3)
    maker = BatchMaker(tokenizer)
    batch = maker.questions([scene], np.random.default_rng(0), per_scene=6)
    answers = maker.tokenizer.decode(batch.targets[0][batch.targets[0] != IGNORE]).split("<|im_end|>")[:-1]
    assert len(answers) == 6 + 1
    assert set(answers) <= {question.answer for question in scene.questions()}


def test_token_labels_name_the_object_under_each_patch():
    scenes = [make_scene(seed) for seed in range(4)]
    labels = token_labels(scenes)
    for index, scene in enumerate(scenes):
        seen = labels["presence"][index].view(20, 20)
        area = torch.zeros(320, 320)
        for thing in scene.objects:
            left, top, right, bottom = thing.box
            area[top:bottom, left:right] = 1
        touched = area.view(20, PATCH, 20, PATCH).amax((1, 3))
        assert torch.equal(seen, touched.long())
        assert ((labels["colour"][index] != IGNORE).view(20, 20) == touched.bool()).all()


def test_the_fast_pixels_are_in_the_processors_range():
    flat, grid = patches([make_scene(0)])
    assert flat.shape == (400, 768)
    assert grid.tolist() == [[1, 20, 20]]
    assert -1.0 <= flat.min() < flat.max() <= 1.0


def test_the_tokenizer_falls_back_to_bytes(tokenizer):
    text = "¿Qué hay? 猫 🐈 <b>&amp;</b>"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    for word in ("large", "hourglass", "purple", "hollow"):
        assert len(tokenizer(" " + word).input_ids) == 1


def test_captions_are_as_long_as_promised(tokenizer):
    lengths = [len(tokenizer(make_scene(seed).caption).input_ids) for seed in range(300)]
    assert min(lengths) >= 78
    assert max(lengths) <= 250


def test_the_tokenizer_that_ships_is_the_one_that_is_built(tokenizer):
    """Weights and token ids belong together: a change of the corpus would scramble the model."""
    shipped = AutoTokenizer.from_pretrained(MODEL_FOLDER)
    assert shipped.get_vocab() == tokenizer.get_vocab()


def test_what_ships_is_small_bf16_and_in_hub_layout():
    weights = MODEL_FOLDER / "model.safetensors"
    assert weights.stat().st_size < 12_000_000
    with safe_open(weights, framework="pt") as file:
        names = list(file.keys())
        assert {file.get_tensor(name).dtype for name in names} == {torch.bfloat16}
    assert (MODEL_FOLDER / "README.md").is_file()


def test_the_captioner_reads_held_out_scenes():
    """A floor well under the model card's figures: a broken model or processor scores near zero."""
    scores = evaluate(MODEL_FOLDER, count=12)
    for name in ATTRIBUTES:
        assert scores[name] > 0.9, scores
    assert scores["count"] > 0.9
    assert scores["question"] > 0.9


def test_the_phenomenon_shows_at_the_default_budget(load):
    """One scene, default settings: one-shot selection loses objects that RCR finds again."""
    captioner = Captioner(load("bundled"))
    right = {}
    for policy in ("full", "bacon", "rcr"):
        right[policy] = 0
        for seed in (9005, 9006, 9007):
            scene = make_scene(seed, count=11)
            prompt = prepare(captioner.loaded, [scene.image()], CAPTION_PROMPT)
            run = captioner.run(prompt, CaptionRequest(policy))
            list(run)
            right[policy] += grade(scene, run.trace().text).right
    assert right["full"] > right["rcr"] > right["bacon"], right


def test_training_goes_on_where_it_stopped(tmp_path):
    """Two phases in one go, and interrupted in between, end in the same weights."""
    steps = ["--device", "cpu", "--evaluate", "0", "--samples", "2"]
    train(["--out", str(tmp_path / "one"), "--vision-steps", "2", "--captioner-steps", "3", *steps])
    train(
        [
            "--out",
            str(tmp_path / "two"),
            "--vision-steps",
            "2",
            "--captioner-steps",
            "3",
            "--stop-after",
            "3",
            *steps,
        ]
    )
    assert not (tmp_path / "two" / "model").exists()
    train(["--out", str(tmp_path / "two"), "--vision-steps", "2", "--captioner-steps", "3", *steps])
    tensors = []
    for name in ("one", "two"):
        with safe_open(tmp_path / name / "model" / "model.safetensors", framework="pt") as file:
            tensors.append({key: file.get_tensor(key) for key in list(file.keys())})
    assert tensors[0].keys() == tensors[1].keys()
    assert all(torch.equal(tensors[0][key], tensors[1][key]) for key in tensors[0])
