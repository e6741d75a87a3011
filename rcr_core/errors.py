"""Typed errors of the core: one line of what went wrong, and a hint of what to do about it.

The core raises these and never prints; only the command line and the page turn them into words for a person.
"""


class ScopeError(Exception):
    """Base of every error that the core raises on purpose.

    `message` says what is wrong, `hint` (may be empty) says what to do.
    """

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class SettingsError(ScopeError, ValueError):
    """A setting is out of its range; the message names the field and the range."""


class LoadError(ScopeError):
    """A model or its processor cannot be loaded."""


class ImageError(ScopeError):
    """An image is missing, broken, or of a size that the model cannot take."""


class PromptError(ScopeError):
    """A prompt (with its image) does not fit the model."""


class EditError(ScopeError, ValueError):
    """An edit names a step, layer or prefix index that the run does not have."""


class TraceError(ScopeError):
    """A trace file is broken, foreign, too large, or of a version that this reader does not know."""


class UnknownRunError(ScopeError):
    """A run is asked for that is not there, or not for this person: the words are the same."""

    def __init__(self):
        super().__init__(
            "there is no such run",
            "it may have been dropped, or belong to someone else; start it again, or open its saved trace",
        )


class StoreFullError(ScopeError):
    """No further run is taken now: too many wait, or too many of one owner go on."""


class BusyError(ScopeError):
    """What is asked for would take something away that is in use."""


class MemoryLimitError(ScopeError):
    """The device, or the host, has no memory left for this run."""


class StudyError(ScopeError):
    """A study cannot go on as asked: its data, its results file, its workers."""


class UnknownStudyError(ScopeError):
    """A study is asked for that is not there, or not for this person: the words are the same."""

    def __init__(self):
        super().__init__(
            "there is no such study", "it may have been dropped, or belong to someone else; start it again"
        )
