"""The command line: what a person types, what comes out, and what happens when it is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rcr_core.__main__ import main
from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.trace import read_trace
from tests.core.tiny import build_tiny

EXAMPLE = EXAMPLES_FOLDER / "1-four-objects.png"
ROOT = Path(__file__).resolve().parents[2]


def run(*words, folder=None, **kwargs):
    """A real process, as a person starts it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rcr_core", *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, **kwargs)


def test_caption_streams_the_text_and_writes_a_complete_trace(tmp_path):
    done = run("caption", EXAMPLE, "--policy", "rcr", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    trace = read_trace(tmp_path / "runs" / "1-four-objects.rcr.rcr")
    text, table = done.stdout.split("\n\n", 1)
    assert text == trace.text
    assert text.startswith("This picture shows objects on a plain")
    assert trace.meta.stop_reason == "stop token"
    assert f"steps           {trace.steps}" in table
    assert f"{trace.refresh_rate:.3f} of layer-steps (target 0.4)" in table
    assert "full scan: 456" in table  # 424 prefix keys and 32 values
    assert "of 4 in all four attributes" in table


def test_json_is_one_object_of_numbers(tmp_path, capsys):
    out = tmp_path / "run.rcr"
    assert main(["caption", str(EXAMPLE), "--json", "--max-new-tokens", "8", "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    trace = read_trace(out)
    assert found["steps"] == 8
    assert found["stop_reason"] == "length"
    assert found["text"] == trace.text
    assert found["refresh_rate"] == pytest.approx(trace.fire[1:].mean())
    assert found["reads"] == pytest.approx(160 * trace.fire[1:].mean())


def test_several_images_stand_in_one_prompt(tmp_path, capsys):
    """The frames of a video are given so. No scene is graded where several pictures are described."""
    Image.new("RGB", (96, 64), "teal").save(tmp_path / "wide.png")
    images = [str(EXAMPLE), str(tmp_path / "wide.png"), str(EXAMPLE)]
    out = tmp_path / "run.rcr"
    assert main(["caption", *images, "--json", "--max-new-tokens", "2", "--out", str(out)]) == 0
    assert "objects" not in json.loads(capsys.readouterr().out)
    trace = read_trace(out)
    assert trace.meta.image_size == ((320, 320), (64, 96), (320, 320))
    assert len(trace.pictures) == 3 and trace.meta.scene is None
    assert main(["info", str(out)]) == 0
    assert "320 x 320 pixels, 96 x 64 pixels, 320 x 320 pixels" in capsys.readouterr().out


def test_images_are_scaled_down_to_what_is_asked_for(tmp_path, capsys):
    out = tmp_path / "run.rcr"
    words = ["caption", str(EXAMPLE), "--json", "--max-new-tokens", "1", "--out", str(out)]
    assert main([*words, "--max-pixels", "25600"]) == 0
    assert read_trace(out).meta.image_size == ((160, 160),)
    assert main([*words, "--max-pixels", "1000"]) != 0
    assert "max_pixels must be 1,024 or more, got 1,000" in capsys.readouterr().err


def test_info_prints_what_a_trace_holds(tmp_path, capsys):
    out = tmp_path / "run.rcr"
    edit = "refresh:3,layer=2"
    main(
        ["caption", str(EXAMPLE), "--max-new-tokens", "6", "--out", str(out), "--edit", edit, "--rho", "0.25"]
    )
    capsys.readouterr()
    assert main(["info", str(out)]) == 0
    text = capsys.readouterr().out
    for part in ("qwen3_vl", "rho 0.25", "selected_row", "320 x 320 pixels", '"kind": "refresh"'):
        assert part in text
    assert main(["info", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["meta"]["edits"] == [{"kind": "refresh", "step": 3, "layer": 2}]


def test_an_interrupt_keeps_what_was_recorded(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rcr_core", "caption", str(EXAMPLES_FOLDER / "8-fourteen-objects.png")]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    process.stdout.read(20)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    trace = read_trace(tmp_path / "runs" / "8-fourteen-objects.rcr.rcr")
    assert trace.meta.stop_reason == "stopped"
    assert 1 <= trace.steps < 200


def broken_image(folder: Path) -> Path:
    path = folder / "broken.png"
    path.write_bytes(EXAMPLE.read_bytes()[:900])
    return path


def thin_image(folder: Path) -> Path:
    path = folder / "thin.png"
    Image.fromarray(np.zeros((4, 3000, 3), np.uint8)).save(path)
    return path


def text_only_model(folder: Path) -> Path:
    return build_tiny("text_only", folder / "text")


BAD = {
    "missing image": (lambda f: ["caption", f / "no.png"], "no.png"),
    "broken image": (lambda f: ["caption", broken_image(f)], "broken.png"),
    "extreme aspect ratio": (lambda f: ["caption", thin_image(f)], "3000"),
    "not an image": (lambda f: ["caption", Path(__file__)], "not a picture"),
    "missing model": (lambda f: ["caption", EXAMPLE, "--model", f / "nowhere"], "nowhere"),
    "folder that is no model": (lambda f: ["caption", EXAMPLE, "--model", f], "config.json"),
    "text-only model": (lambda f: ["caption", EXAMPLE, "--model", text_only_model(f)], "image"),
    "unknown policy": (lambda f: ["caption", EXAMPLE, "--policy", "magic"], "known policies: full, bacon"),
    "rho out of range": (lambda f: ["caption", EXAMPLE, "--rho", "1.5"], "rho must be a number in [0, 1]"),
    "select out of range": (
        lambda f: ["caption", EXAMPLE, "--select", "0"],
        "select must be a whole number in [1",
    ),
    "too few candidates": (lambda f: ["caption", EXAMPLE, "--candidates", "3"], "at least select (32)"),
    "too many new tokens": (
        lambda f: ["caption", EXAMPLE, "--max-new-tokens", "5000"],
        "max_new_tokens must be in",
    ),
    "prompt too long": (lambda f: ["caption", EXAMPLE, "--prompt", "row " * 5000], "4096"),
    "edit out of range": (
        lambda f: ["caption", EXAMPLE, "--edit", "tau:10,value=5"],
        "a value in [1e-06, 1]",
    ),
    "edit without its index": (lambda f: ["caption", EXAMPLE, "--edit", "pin:3"], "needs the index"),
    "out is a folder": (lambda f: ["caption", EXAMPLE, "--out", f], "is a folder"),
    "unreadable edit": (lambda f: ["caption", EXAMPLE, "--edit", "jump:3"], "unknown edit 'jump'"),
    "edit beyond the run": (
        lambda f: ["caption", EXAMPLE, "--edit", "hold:3,layer=9"],
        "layer must be in [0, 5]",
    ),
    "out folder missing": (lambda f: ["caption", EXAMPLE, "--out", f / "a" / "b.rcr"], "there is no folder"),
    "trace missing": (lambda f: ["info", f / "no.rcr"], "no.rcr"),
    "trace that is an image": (lambda f: ["info", EXAMPLE], "trace"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_one_line_with_exit_code_2_and_nothing_is_written(
    case, tmp_path, capsys, monkeypatch
):
    words, expected = BAD[case]
    monkeypatch.chdir(tmp_path)
    words = [str(word) for word in words(tmp_path)]
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert expected in printed.err
    assert sorted(tmp_path.rglob("*")) == before


def test_help_names_every_policy_and_every_setting(capsys):
    with pytest.raises(SystemExit) as left:
        main(["caption", "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    for word in ("full", "infinigen", "--tau0", "--skip-layers", "--bacon", "(default: 0.4)"):
        assert word in text


def test_an_unknown_flag_is_refused_with_exit_code_2(capsys):
    with pytest.raises(SystemExit) as left:
        main(["caption", str(EXAMPLE), "--budget", "3"])
    assert left.value.code == 2
