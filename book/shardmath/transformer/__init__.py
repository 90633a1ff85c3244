"""A Transformer in numbers: its matmuls, parameters, FLOPs, bytes and memory.

>>> print(model("llama 3 8b").layer[0])
x[B, S, D] · q[D, N, H] -> Q[B, S, N, H]
>>> flops(model("llama 3 8b"), 8192, attention="causal")
51.5 GFLOPs a token in training: weights 41.9 G, attention 6.44 G, head 3.15 G
"""

from .architecture import ACTIVE, Experts, Indexer, Latent, Model, Recurrent
from .flops import ATTENTION, Flops, flops, keys_per_query, recomputed
from .lines import Array, Matmul, matmul
from .memory import (
    TRAINING,
    PerParam,
    cached_values,
    korthikanti,
    kv_cache,
    logits_bytes,
    recurrent_state,
    saved_bytes,
)
from .records import (
    ALL,
    DEEPSEEK_V3,
    GEMMA_2_27B,
    GEMMA_3_27B,
    GPT_3,
    GPT_OSS_120B,
    KIMI_K2,
    LLAMA_2_70B,
    LLAMA_3_8B,
    LLAMA_3_70B,
    LLAMA_3_405B,
    MIXTRAL_8X7B,
    PALM_540B,
    QWEN_3_235B_A22B,
    model,
)
from .remat import KERNELS, REMAT, Recompute, Saved, recompute, saved, saved_once
from .utilization import conventions, mfu, tokens_per_second

__all__ = [
    "ACTIVE",
    "ALL",
    "ATTENTION",
    "DEEPSEEK_V3",
    "GEMMA_2_27B",
    "GEMMA_3_27B",
    "GPT_3",
    "GPT_OSS_120B",
    "KERNELS",
    "KIMI_K2",
    "LLAMA_2_70B",
    "LLAMA_3_8B",
    "LLAMA_3_70B",
    "LLAMA_3_405B",
    "MIXTRAL_8X7B",
    "PALM_540B",
    "QWEN_3_235B_A22B",
    "REMAT",
    "TRAINING",
    "Array",
    "Experts",
    "Flops",
    "Indexer",
    "Latent",
    "Matmul",
    "Model",
    "PerParam",
    "Recompute",
    "Recurrent",
    "Saved",
    "cached_values",
    "conventions",
    "flops",
    "keys_per_query",
    "korthikanti",
    "kv_cache",
    "logits_bytes",
    "matmul",
    "mfu",
    "model",
    "recompute",
    "recomputed",
    "recurrent_state",
    "saved",
    "saved_bytes",
    "saved_once",
    "tokens_per_second",
]
