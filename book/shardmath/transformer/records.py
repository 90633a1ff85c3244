"""Published models, each shape and count with its source: ``models.toml``.

>>> model("llama 3.1 8b").params, model("Llama-3-70B").layers
(8030261248, 80)
"""

import tomllib
from importlib.resources import files

from ..base.facts import Fact, Source, recorded
from ..base.records import named, plain
from .architecture import PARTS, Model


def model(name: str) -> Model:
    """The model that `name` means; case, spaces and dashes do not matter.

    Raises:
        ValueError: `name` means several models or none; the message lists them or
            similar names.

    >>> model("llama 3 405b").name
    'Llama 3.1 405B'
    >>> model("llama 3")
    Traceback (most recent call last):
    ValueError: model 'llama 3' could be Llama 3.1 8B, Llama 3.1 70B, Llama 3.1 405B: \
say which
    """
    some = ", ".join(one.name for one in (LLAMA_3_8B, GPT_3, DEEPSEEK_V3))
    return named("model", name, _BY_KEY, f"MODELS has {len(ALL)}, such as {some}")


def _read() -> tuple[dict[str, Source], dict[str, Model], dict[str, Model]]:
    """All sources, all models by id, and all models by each of their names."""
    rows = tomllib.loads(files(__package__).joinpath("models.toml").read_text("utf-8"))
    sources = {key: Source(key, **row) for key, row in rows.pop("sources").items()}

    def facts(entries: dict) -> dict[str, Fact]:
        found = {}
        for name, entry in entries.items():
            if "value" in entry:
                found[name] = recorded(sources, **entry)
            else:  # by convention
                found |= {f"{name}.{k}": one for k, one in facts(entry).items()}
        return found

    models, by_key = {}, {}
    for key, row in rows.items():
        aliases = row.pop("aliases", ())
        row["source"] = sources[row["source"]]
        row["published"] = facts(row.pop("published", {}))
        for part, kind in PARTS.items():
            if part in row:
                row[part] = kind(**row[part])
        models[key] = Model(**row)
        for called in (key, row["name"], *aliases):
            by_key[plain(called)] = models[key]
    return sources, models, by_key


SOURCES, MODELS, _BY_KEY = _read()
ALL = tuple(MODELS.values())

GPT_3 = MODELS["gpt_3"]
GPT_OSS_120B = MODELS["gpt_oss_120b"]
PALM_540B = MODELS["palm_540b"]
GEMMA_2_27B = MODELS["gemma_2_27b"]
GEMMA_3_27B = MODELS["gemma_3_27b"]
LLAMA_2_70B = MODELS["llama_2_70b"]
LLAMA_3_8B = MODELS["llama_3_8b"]
LLAMA_3_70B = MODELS["llama_3_70b"]
LLAMA_3_405B = MODELS["llama_3_405b"]
QWEN_3_235B_A22B = MODELS["qwen_3_235b_a22b"]
MIXTRAL_8X7B = MODELS["mixtral_8x7b"]
DEEPSEEK_V3 = MODELS["deepseek_v3"]
KIMI_K2 = MODELS["kimi_k2"]
