"""Set before anything is imported: nothing asks the hub, and uploads lie in a folder of their own."""

import os
import signal
import tempfile

# Who is started in the background ignores interrupts, and so would whatever the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["HF_HUB_OFFLINE"] = "1"
_uploads = tempfile.TemporaryDirectory(prefix="rcr-scope-tests-")
os.environ["GRADIO_TEMP_DIR"] = _uploads.name
