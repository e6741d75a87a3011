"""No test asks the hub for anything; the variable is read when huggingface_hub is first imported."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
