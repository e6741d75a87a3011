"""The trace: what a run leaves behind, as records, as one file, and as the input of every figure."""

from rcr_core.trace.builder import TraceBuilder
from rcr_core.trace.cells import with_cells
from rcr_core.trace.checks import MAX_NAME
from rcr_core.trace.exchanges import Exchange, exchanges
from rcr_core.trace.file import MAX_TRACE_BYTES, read_meta, read_trace, save_trace, trace_bytes
from rcr_core.trace.geometry import VisualGeometry
from rcr_core.trace.images import MAX_IMAGES
from rcr_core.trace.meta import SCHEMA, STOP_REASONS, PromptPiece, TraceMeta
from rcr_core.trace.records import StepRecord, Trace
from rcr_core.trace.schema import ARRAYS

__all__ = [
    "ARRAYS",
    "MAX_IMAGES",
    "MAX_NAME",
    "MAX_TRACE_BYTES",
    "SCHEMA",
    "STOP_REASONS",
    "Exchange",
    "PromptPiece",
    "StepRecord",
    "Trace",
    "TraceBuilder",
    "TraceMeta",
    "VisualGeometry",
    "exchanges",
    "read_meta",
    "read_trace",
    "save_trace",
    "trace_bytes",
    "with_cells",
]
