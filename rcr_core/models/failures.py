"""What goes wrong while a checkpoint is read, in words: one sentence and one hint for each cause.

transformers wraps its causes, so each error is judged by its whole chain. Errors that no person can repair (a
TypeError, an unexplained RuntimeError) pass through untouched: they are bugs.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import errors as hub
from safetensors import SafetensorError

from rcr_core.errors import LoadError, MemoryLimitError
from rcr_core.out_of_memory import is_out_of_memory

FETCH_AGAIN = "download the checkpoint again"
SUGGESTION = "choose an image-text model such as Qwen2-VL, Qwen3-VL or LLaVA-NeXT"

# bitsandbytes leaves no quantised weights elsewhere; this is how transformers says so.
_NO_ROOM_QUANTISED = "dispatched on the CPU or the disk"
# A file of the hub that ended too soon, from its HTTP client and from its storage's own.
_CUT_SHORT = ("Consistency check failed", "Data processing error")


@contextmanager
def explained(name: str, stage: str) -> Iterator[None]:
    """Turn what transformers raises while it reads `stage` of `name` into `LoadError`, `MemoryLimitError`."""
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            raise MemoryLimitError(
                f"no memory left to load {name}",
                "try --dtype bfloat16, --quantize 4bit or --device-map auto, or choose a smaller model",
            ) from error
        reason = _from_hub(name, error) or _from_download(name, error) or _from_files(name, stage, error)
        if reason is None:
            raise
        raise reason from error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _from_hub(name: str, error: BaseException) -> LoadError | None:
    def cause(*kinds: type) -> BaseException | None:
        return next((link for link in _chain(error) if isinstance(link, kinds)), None)

    if cause(hub.GatedRepoError):
        hint = f"accept its licence at https://huggingface.co/{name}, then run `hf auth login`"
        return LoadError(f"the hub gives {name} only to accounts that accepted its licence", hint)
    if cause(hub.RepositoryNotFoundError):
        hint = (
            "check the spelling; a private model needs `hf auth login`; a folder must exist on this machine"
        )
        return LoadError(f"the hub has no model {name}, and there is no such folder", hint)
    if cause(hub.HFValidationError):
        return LoadError(f"{name} is neither a folder nor a hub id", "a hub id looks like owner/name")
    answer = cause(hub.HfHubHTTPError)
    if answer and not isinstance(answer, hub.EntryNotFoundError):  # a missing file is told by its stage
        return LoadError(
            f"the hub refused {name}: {_first_sentence(answer)}", "try again later, or use a model folder"
        )
    if cause(hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled):
        hint = "check the connection and HF_HUB_OFFLINE, or give the path of a model folder"
        return LoadError(f"{name} is not on this machine and the hub cannot be reached", hint)
    return None


def _from_download(name: str, error: BaseException) -> LoadError | None:
    for link in _chain(error):
        # The libraries under the hub's client change from version to version, so their types go by name.
        kinds = {kind.__name__ for kind in type(link).__mro__}
        if kinds & {"TransportError", "ConnectionError"} or any(words in str(link) for words in _CUT_SHORT):
            hint = "run it again: it goes on where it stopped"
            return LoadError(f"the connection broke while {name} was fetched", hint)
        if isinstance(link, OSError) and link.errno == errno.ENOSPC:
            hint = "free some of it, or set HF_HOME to a folder on another disk"
            return LoadError(f"there is no disk space left for {name}", hint)
    return None


def _from_files(name: str, stage: str, error: BaseException) -> LoadError | None:
    if isinstance(error, SafetensorError):
        return LoadError(
            f"a weight file of {name} is cut off or broken ({_first_sentence(error)})", FETCH_AGAIN
        )
    if isinstance(error, FileNotFoundError) and stage == "weights":
        missing = Path(error.filename or str(error)).name
        return LoadError(f"{name} lacks the weight file {missing}", FETCH_AGAIN)
    if isinstance(error, OSError) and error.errno is None and stage == "weights":
        hint = "get its .safetensors files; .bin files can run code when opened and are not read"
        return LoadError(f"{name} has no weights in safetensors form", hint)
    if isinstance(error, ValueError) and _NO_ROOM_QUANTISED in str(error):
        hint = "try --quantize 4bit, --device-map auto without --quantize, or choose a smaller model"
        return LoadError(f"the quantised weights of {name} do not fit on the GPU", hint)
    if isinstance(error, ImportError):
        return LoadError(
            f"a package is missing for the {stage} of {name}: {_first_sentence(error)}", "install it"
        )
    if isinstance(error, KeyError) and stage == "processor":
        return LoadError(f"the processor of {name} cannot be read: it has no {error}", FETCH_AGAIN)
    # The Rust tokenizer raises bare `Exception` for a file that it cannot parse.
    if isinstance(error, (OSError, ValueError, hub.StrictDataclassError)) or type(error) is Exception:
        return LoadError(f"the {stage} of {name} cannot be read: {_first_sentence(error)}", FETCH_AGAIN)
    return None


def _first_sentence(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].split(". ")[0].strip(" .:") if lines else type(error).__name__
