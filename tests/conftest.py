"""Set before anything is imported: nothing asks the hub, and uploads lie in a folder of their own."""

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
_uploads = tempfile.TemporaryDirectory(prefix="rcr-scope-tests-")
os.environ["GRADIO_TEMP_DIR"] = _uploads.name
