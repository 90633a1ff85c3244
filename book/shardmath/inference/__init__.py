"""Inference: how long an engine step of a server takes, as bound and as prediction.

>>> from shardmath.transformer import model
>>> server = Server(model("llama 3 70b"), "h100:8", Layout(tensor=8), Formats("fp8"))
>>> 1e-3 < server.decode(1, 1000).bound < server.decode(1, 1000).seconds < 2e-2
True
"""

from .capacity import Capacity, capacity, held, smallest_layout
from .derivation import Amounts, Kernel, alone, amounts
from .efficiencies import Calibration, band, calibration
from .load import (
    Load,
    Requests,
    Scheduler,
    closed_loop,
    disaggregated,
    open_loop,
    slots,
)
from .server import Server, StepTime
from .setting import BITS, Batch, Formats, Layout

__all__ = [
    "BITS",
    "Amounts",
    "Batch",
    "Calibration",
    "Capacity",
    "Formats",
    "Kernel",
    "Layout",
    "Load",
    "Requests",
    "Scheduler",
    "Server",
    "StepTime",
    "alone",
    "amounts",
    "band",
    "calibration",
    "capacity",
    "closed_loop",
    "disaggregated",
    "held",
    "open_loop",
    "slots",
    "smallest_layout",
]
