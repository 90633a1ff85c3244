"""Settings that tables of measured servers state outside of their rows.

>>> from .serving_rows import read_row
>>> row = {"model": "Llama-3.1-405B", "chip": "B200", "count": 8, "mode": "offline",
...     "output": 650, "metric": "output_tokens_s", "value": 1600, "unit": "tokens/s",
...     "source": "mlperf-v5.1"}
>>> said = []
>>> filled(read_row(row), said).input, said
(9400, ['prompts of 9,400 tokens in the mean, as MLCommons says of this benchmark'])
"""

import re
from dataclasses import replace

from .serving_rows import ServingRow

# "LLM Inference v5.0", MLCommons, April 2025: 9,400 tokens in, 680 out.
MLPERF_PROMPTS = {"Llama 3.1 405B": 9400}
# From other rows of the same BLIS workload: tokens of a prompt and of an answer, and
# requests per second of the first stage and of both stages together.
BLIS = {
    "general": (547, 248, 2.5, 4.97),
    "codegen": (566, 247, 5.0, 8.33),
    "roleplay": (750, 251, 6.0, 6.0),
    "reasoning": (1034, 1448, 1.0, 1.0),
}
# Seconds of TTFT and TPOT that 99 of 100 requests of a benchmark may take at most:
# "MLPerf Inference Rules", mlcommons/inference_policies at ac93e89c.
LIMITS = {
    ("Llama 2 70B", "server"): (2.0, 0.2),
    ("Llama 2 70B", "interactive"): (0.45, 0.04),
    ("Mixtral 8x7B", "server"): (2.0, 0.2),
    ("Llama 3.1 405B", "server"): (6.0, 0.175),
    ("Llama 3.1 405B", "interactive"): (4.5, 0.08),
    ("Llama 3.1 8B", "server"): (2.0, 0.1),
    ("Llama 3.1 8B", "interactive"): (0.5, 0.03),
}
WORKLOAD = re.compile(r"(?:workload )?([a-z]+)(?:-lite)?;")


def filled(row: ServingRow, said: list[str]) -> ServingRow:
    """The row, with settings filled in that its table states elsewhere.

    Args:
        row: the row as it was read.
        said: a list; a description of each setting filled in is appended to it.
    """
    source = row.source.lower()
    if "mlperf" in source and row.input is None and row.model.name in MLPERF_PROMPTS:
        prompt = MLPERF_PROMPTS[row.model.name]
        said.append(
            f"prompts of {prompt:,} tokens in the mean, as MLCommons says of this "
            "benchmark"
        )
        return replace(row, input=prompt)
    found = WORKLOAD.match(row.note)
    if "blis" in source and row.input is None and found and found[1] in BLIS:
        prompt, answer, first, both = BLIS[found[1]]
        rate = row.rate or (both if row.row.endswith("stage-1") else first)
        said.append(
            f"prompts of {prompt:,} tokens, answers of {answer:,} and {rate:g} "
            f"requests a second, as in other rows of the workload {found[1]}"
        )
        return replace(row, input=prompt, output=answer, rate=rate)
    return row


def limits(row: ServingRow) -> tuple[float, float] | None:
    """The benchmark's limits of TTFT and TPOT in seconds; None if it has no limits."""
    if "mlperf" not in row.source.lower():
        return None
    return LIMITS.get((row.model.name, row.mode))
