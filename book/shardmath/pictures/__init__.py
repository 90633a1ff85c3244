"""Pictures of chips and of what runs on them, drawn from the book's own records.

Each function answers with a `Picture`, which shows itself in a notebook and on
the page.
"""

from .gpu import gpu_parts
from .tpu import tpu_parts

__all__ = ["gpu_parts", "tpu_parts"]
