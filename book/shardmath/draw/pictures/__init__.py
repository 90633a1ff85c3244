"""Pictures of chips and of what runs on them, drawn from the book's own records.

Each function returns a `Picture`, which displays itself in a notebook and on the page.
``draw(thing)`` draws any object of the package that has a picture.
"""

from ..groups import groups
from ..objects.block import transformer_block
from ..objects.cases import cases
from ..objects.circle import circle
from ..objects.grid import grid
from ..objects.layout import layouts
from ..objects.pipeline import timeline
from ..objects.trace import trace_ends, trace_step
from ..objects.tree import domains
from ..objects.waves import sawtooth
from ..picture import beside
from .attention_blocks import attention_blocks
from .bars import bars
from .behind import behind
from .causal_load import causal_load, causal_steps
from .draw import draw
from .exchange import exchange
from .gathering import gathering
from .gpu import gpu_parts
from .holdings import holdings
from .kernel_lanes import kernel_lanes
from .loads import loads
from .masks import masks
from .memories import memories
from .nesting import nesting
from .overlap import overlap
from .padding import padding
from .replicas import replicas
from .row_blocks import row_blocks
from .slices import slices
from .streaming import streaming
from .tensor import block, matmuls
from .tpu import tpu_parts
from .two_chips import two_chips

__all__ = [
    "attention_blocks",
    "bars",
    "behind",
    "beside",
    "block",
    "cases",
    "causal_load",
    "causal_steps",
    "circle",
    "domains",
    "draw",
    "exchange",
    "gathering",
    "gpu_parts",
    "grid",
    "groups",
    "holdings",
    "kernel_lanes",
    "layouts",
    "loads",
    "masks",
    "matmuls",
    "memories",
    "nesting",
    "overlap",
    "padding",
    "replicas",
    "row_blocks",
    "sawtooth",
    "slices",
    "streaming",
    "timeline",
    "tpu_parts",
    "trace_ends",
    "trace_step",
    "transformer_block",
    "two_chips",
]
