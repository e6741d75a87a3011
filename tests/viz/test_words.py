"""The front end calls policies by the names that the core gives them."""

from __future__ import annotations

import re
from pathlib import Path

from rcr_core.policies import POLICIES

WORDS = Path(__file__).resolve().parents[2] / "viz" / "scope" / "words.js"


def test_every_policy_has_the_title_of_the_registry():
    table = re.search(r"const POLICY_TITLES = \{(.*?)\};", WORDS.read_text(), re.DOTALL)[1]
    titles = dict(re.findall(r'(\w+): "([^"]+)"', table))
    assert titles == {name: policy.title for name, policy in POLICIES.items()}
