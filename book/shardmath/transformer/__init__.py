"""A Transformer in numbers: its matmuls, parameters, FLOPs, bytes and memory.

>>> print(model("llama 3 8b").layer[0])
x[B, S, D] · q[D, N, H] -> Q[B, S, N, H]
"""

from .lines import Array, Matmul, matmul
from .model import Experts, Latent, Model
from .records import ALL, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, model

__all__ = [
    "ALL",
    "LLAMA_3_8B",
    "LLAMA_3_70B",
    "LLAMA_3_405B",
    "Array",
    "Experts",
    "Latent",
    "Matmul",
    "Model",
    "matmul",
    "model",
]
