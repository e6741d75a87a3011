"""What the tiny checkpoints share: sizes, a tokenizer, vision towers, and weights that make them lively."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import CLIPVisionConfig, GenerationConfig, PreTrainedTokenizerFast, SiglipVisionConfig

PATCH = 8  # pixels
SIDE = 6  # patches along one side of a tile, or of the whole view where there are no tiles
TILE = PATCH * SIDE  # pixels
CORPUS = (
    "user assistant system Describe this image in detail. What is in the picture?",
    "a red circle left of the blue square, above two green triangles and a small yellow star",
    "[INST] [/INST] The scene shows three large objects on a grey background.",
)
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
_TOWER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": TILE,
    "patch_size": PATCH,
}


def spread(model: torch.nn.Module) -> None:
    """Weights that make attention uneven and the greedy text vary; the default init of 0.02 does neither."""
    for name, weight in model.named_parameters():
        with torch.no_grad():
            gain = 1.6 if "q_" in name or "k_" in name else 1.0
            if name.endswith("bias"):
                weight.normal_(0, 0.05)
            elif "norm" in name:
                weight.fill_(gain)
            elif "embed" in name or "newline" in name:
                weight.normal_(0, 1.0)
            else:
                weight.normal_(0, gain / weight[0].numel() ** 0.5)


def tokenizer_of(
    specials: tuple[str, ...], named: dict[str, str] | None = None, **roles: str
) -> PreTrainedTokenizerFast:
    """Byte-level BPE over a few sentences, `specials` first.

    roles: bos_token and the like; a BOS is put before every text. named: what a family's tokenizer config
    calls its own tokens, such as image_token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if "bos_token" in roles:
        bos = roles["bos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        additional_special_tokens=[token for token in specials if token not in roles.values()],
        clean_up_tokenization_spaces=False,
        **({"model_specific_special_tokens": named} if named else {}),
        **roles,
    )


def clip_tower() -> CLIPVisionConfig:
    return CLIPVisionConfig(**_TOWER, projection_dim=32)


def siglip_tower() -> SiglipVisionConfig:
    return SiglipVisionConfig(**_TOWER, vision_use_head=False)


def pinpoints(*grids: tuple[int, int]) -> list[list[int]]:
    """Resolutions that an image may be fitted into, from (rows, columns) of tiles."""
    return [[TILE * rows, TILE * columns] for rows, columns in grids]


def text_ids(tokenizer: PreTrainedTokenizerFast) -> dict[str, int | None]:
    """What a text config takes over from its tokenizer."""
    return {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def generation_of(tokenizer: PreTrainedTokenizerFast) -> GenerationConfig:
    return GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
