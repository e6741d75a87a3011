"""Every failure of loading that a person can meet, each one caused for real."""

import json
import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING

from rcr_core.models.failures import explained
from tests.core.checkpoints import edit, refusal, serving

# Places


def test_no_such_folder(tmp_path):
    for source in (tmp_path / "none", str(tmp_path / "none"), "./none", "a/b/c", "~/no/such/folder", ""):
        refusal(source, "no such folder" if source else "not a model folder")


def test_a_file_is_not_a_folder(tiny):
    refusal(tiny("qwen2_vl") / "config.json", "is a file")


def test_a_folder_that_is_no_model(tmp_path):
    refusal(tmp_path, "no config.json")


def test_an_offline_hub_id():
    error = refusal("nobody/nothing", "nobody/nothing", "cannot be reached")
    assert "HF_HUB_OFFLINE" in error.hint


def test_an_impossible_hub_id():
    refusal("nobody/no--thing", "neither a folder nor a hub id")


@pytest.fixture
def hub(monkeypatch):
    """A hub on this machine that answers by the rules of the real one: status and X-Error-Code."""
    answers = {
        "gated": (403, "GatedRepo"),
        "nobody": (401, "RepoNotFound"),
        "teapot": (418, ""),
        "hollow": (404, "EntryNotFound"),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            status, code = answers[self.path.split("/")[1]]
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *args):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        address = f"http://127.0.0.1:{server.server_port}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield


@pytest.mark.parametrize(
    "name, words, hint",
    [
        ("gated/model", "accepted its licence", "https://huggingface.co/gated/model"),
        ("nobody/model", "no model nobody/model", "hf auth login"),
        ("teapot/model", "refused teapot/model", "later"),
        ("hollow/model", "no config.json", "image-text"),
    ],
)
def test_what_the_hub_refuses(name, words, hint, hub):
    assert hint in refusal(name, words).hint


@pytest.mark.parametrize(
    "options, words",
    [
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"device": "cuda:99"}, "no device cuda:99"),
        ({"dtype": "int8"}, "unknown dtype 'int8'"),
    ],
)
def test_devices_and_dtypes_that_are_not_there(options, words, tiny):
    refusal(tiny("qwen2_vl"), words, **options)


# Configuration


def test_a_text_only_model(tiny):
    error = refusal(tiny("text_only"), "llama", "does not read images")
    assert "Qwen2-VL" in error.hint


def test_an_unknown_architecture(broken):
    folder = broken()
    edit(folder / "config.json", model_type="visionary_9", auto_map={"AutoConfig": "code.Config"})
    (folder / "code.py").write_text("raise SystemExit('code of a checkpoint must never run')")
    refusal(folder, "visionary_9", "does not know")


@pytest.mark.parametrize("text", ["{", "", "\x00\x01", '"config"', "[]", "{}"])
def test_a_config_that_says_nothing(text, broken):
    folder = broken()
    (folder / "config.json").write_text(text)
    refusal(folder, "broken")


def test_a_config_with_a_value_of_the_wrong_kind(broken):
    folder = broken()
    text = json.loads((folder / "config.json").read_text())["text_config"]
    edit(folder / "config.json", text_config={**text, "num_attention_heads": "four"})
    refusal(folder, "configuration", "num_attention_heads")


@pytest.mark.parametrize(
    "model_type, words",
    [
        ("chameleon", "does not read the image as tokens of a prompt"),
        ("gemma4", "heads differ from layer to layer"),
        ("mistral_large4", "none of them keeps plain keys and values"),
        ("glm5_next", "none of them keeps plain keys and values"),
        ("unlimited_ocr", "none of them keeps plain keys and values"),
    ],
)
def test_attention_layers_that_no_policy_can_manage(model_type, words, tmp_path):
    """Told by the configuration alone: there is neither a processor nor a weight in the folder."""
    if model_type not in CONFIG_MAPPING:
        pytest.skip("this transformers does not know it")
    CONFIG_MAPPING[model_type]().save_pretrained(tmp_path)
    refusal(tmp_path, "attention layers that are not supported", words)


# Processor


def test_a_missing_processor(broken):
    folder = broken()
    (folder / "processor_config.json").unlink()
    error = refusal(folder, "the processor of broken cannot be read")
    assert "huggingface.co" not in error.message  # only the first sentence of what transformers says


def test_a_processor_of_another_kind(broken):
    folder = broken()
    edit(folder / "processor_config.json", processor_class="Wav2Vec2Processor")
    refusal(folder, "Wav2Vec2Processor", "not supported")


def test_a_missing_tokenizer(broken):
    """transformers makes up an empty one without a word."""
    folder = broken()
    for path in folder.glob("tokenizer*"):
        path.unlink()
    refusal(folder, "tokenizer", "image token")


@pytest.mark.parametrize("text", ["{", "{}", '{"added_tokens": [], "model": {"type": "Unheard"}}'])
def test_a_broken_tokenizer(text, broken):
    folder = broken()
    (folder / "tokenizer.json").write_text(text)
    refusal(folder, "processor of broken cannot be read")


# Weights


def first_shard(folder: Path) -> Path:
    return sorted(folder.glob("*-00001-of-*.safetensors"))[0]


@pytest.fixture
def broken_shards(sharded, tmp_path):
    return Path(shutil.copytree(sharded, tmp_path / "broken"))


@pytest.mark.parametrize("kept", [0, 5, 2000, -1])
def test_a_truncated_shard(kept, broken_shards):
    shard = first_shard(broken_shards)
    shard.write_bytes(shard.read_bytes()[:kept])
    refusal(broken_shards, "cut off or broken")


def test_a_missing_shard(broken_shards):
    shard = first_shard(broken_shards)
    shard.unlink()
    refusal(broken_shards, "lacks the weight file", shard.name)


@pytest.mark.skipif(find_spec("timm") is not None, reason="the package is there")
def test_a_model_that_needs_a_missing_package(broken):
    folder = broken("llava")
    edit(folder / "config.json", vision_config={"model_type": "timm_wrapper", "architecture": "resnet18"})
    refusal(folder, "a package is missing", "timm")


def test_no_weights(broken):
    folder = broken()
    (folder / "model.safetensors").unlink()
    refusal(folder, "no weights in safetensors form")


def test_pickled_weights_are_not_read(broken):
    folder = broken()
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert ".bin" in refusal(folder, "no weights in safetensors form").hint


def test_a_missing_tensor(broken):
    folder = broken()
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.2.self_attn.o_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    refusal(folder, "lacks the weights", "layers.2.self_attn.o_proj.weight")


def test_a_tensor_of_another_shape(broken):
    folder = broken()
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = torch.ones(63)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    refusal(folder, "norm.weight", "another shape")


LOAD_WITH_LITTLE_ROOM = """
import resource, sys
from rcr_core.errors import MemoryLimitError
from rcr_core.models import load_model

for room in (6, 3):  # GB: enough to map the file twice but not to convert it, and not enough to map it twice
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 30), resource.RLIM_INFINITY))
    try:
        load_model(sys.argv[1], device="cpu")
    except MemoryLimitError as error:
        print(error.message, bool(error.hint))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space limits are tested where they exist")
def test_no_memory_left(broken):
    """2 GB of bfloat16, a hole in a sparse file, of which float32 makes 4 GB; in a limited process."""
    folder, vocabulary = broken(), 1 << 24
    weights = {name: weight.bfloat16() for name, weight in load_file(folder / "model.safetensors").items()}
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    grow(folder / "model.safetensors", "lm_head.weight", (vocabulary, 64))
    text = json.loads((folder / "config.json").read_text())["text_config"]
    edit(folder / "config.json", text_config={**text, "vocab_size": vocabulary})
    done = subprocess.run(
        [sys.executable, "-c", LOAD_WITH_LITTLE_ROOM, folder],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # libgomp exits where threads fail to start
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == ["no memory left to load broken True"] * 2, done.stderr


@pytest.mark.parametrize("bug", [TypeError("a bug"), RuntimeError("another"), AttributeError("a third")])
def test_bugs_are_not_explained_away(bug):
    with pytest.raises(type(bug)) as caught, explained("anything", "weights"):
        raise bug
    assert caught.value is bug


def grow(path: Path, name: str, shape: tuple[int, int]) -> None:
    """Add a bfloat16 tensor of zeros to a safetensors file, without writing them."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    end = len(body) + 2 * shape[0] * shape[1]
    header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(body), end]}
    encoded = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded + body)
        file.truncate(8 + len(encoded) + end)
