"""The paper's own numbers, to hold a study against."""

from __future__ import annotations

from rcr_core.findings.table import Column, Table

TITLE = (
    "Drift Says When, Budget Says How Much: "
    "Rate-Controlled KV Re-selection for Long-Form Multimodal Generation"
)

_COLUMNS = (
    Column("finding", "finding", "text"),
    Column("where", "where", "text"),
    Column("value", "value", "text"),
    Column("table", "compare with", "text", "the table of a study that has the same number"),
)
_FIDELITY, _LAYERS, _TERCILES = "fidelity", "layers", "terciles"
_QWEN2 = "Qwen2-VL, DetailCaps"
_ROWS = (
    ("prefill oracle, fidelity", "DetailCaps", ".44 to .52", _FIDELITY),
    ("exact re-selection, fidelity", "DetailCaps", ".48 to .61", _FIDELITY),
    ("RCR over BACON", "DetailCaps", "+11.4 to +21.0 points", _FIDELITY),
    ("RCR over the fixed threshold", "DetailCaps", "+2.0 to +4.8 points", _FIDELITY),
    ("RCR against exact re-selection", "LLaVA, DetailCaps", "slightly above it", _FIDELITY),
    ("Quest over BACON", "DetailCaps", "+6.0 points at most", _FIDELITY),
    ("ArkVale against BACON", "Qwen2-VL", "below it", _FIDELITY),
    ("RCR, refresh rate at rho 40 %", "DetailCaps", "40 to 48 %", "controller"),
    ("RCR, refresh rate in outputs of 12 to 29 steps", "TextCaps", "above rho", "controller"),
    ("fixed threshold, tau that each setting needs", "all", ".02 to .15", "thresholds"),
    ("top entry stays between adjacent steps", "Qwen2-VL", "41 %", _LAYERS),
    ("top entry stays between adjacent steps", "LLaVA", "80 %", _LAYERS),
    ("fixed threshold .03, refresh rate, high drift", _QWEN2, "35 %", _TERCILES),
    ("fixed threshold .03 against exact, high drift", _QWEN2, ".479 against .484", _TERCILES),
    ("fixed threshold .03, refresh rate, low drift", _QWEN2, "1 %", _TERCILES),
    ("fixed threshold .03 against exact, low drift", _QWEN2, ".462 against .763", _TERCILES),
    ("gap to InfiniGen with mean drift, Spearman", _QWEN2, "−.41", "correlations"),
    ("gap to InfiniGen with output length, Spearman", _QWEN2, "−.01", "correlations"),
    (
        "oracle against uncompressed, short answers, accuracy",
        "Qwen2-VL, TextVQA",
        ".851 against .848",
        "contrast",
    ),
    ("RCR, reads per KV head and layer-step", "rho 40 %", "160 x rate, about 64", "cost"),
    ("Quest, ArkVale, InfiniGen, reads", "", "64", "cost"),
    ("RCR, resident key-equivalents", "", "Np / 16", "cost"),
    ("InfiniGen, resident key-equivalents", "", "Np / 4", "cost"),
)


def paper_table() -> Table:
    """The published numbers, each with the table of a study that it compares with."""
    note = (
        f'"{TITLE}", from its published summary. Qwen2-VL-7B, LLaVA-NeXT-Mistral-7B and Qwen3-VL-8B, greedy; '
        "TextCaps (500 images, up to 64 new tokens) and DetailCaps (300 images, up to 512). Select 32, "
        "window 32, tau0 .03, rho .4. Ranges are over models. For orientation: another model on other data "
        "need not agree."
    )
    return Table("paper", "The paper's numbers", _COLUMNS, _ROWS, note)
