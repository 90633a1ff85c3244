"""Models that were published, each shape and count with its source: ``models.toml``.

>>> model("llama 3.1 8b").params, model("Llama-3-70B").layers
(8030261248, 80)
"""

import difflib
import re
import tomllib
from importlib.resources import files

from ..facts import Fact, Source
from .model import Experts, Latent, Model


def model(name: str) -> Model:
    """The model that `name` means; case, spaces and dashes do not matter.

    Raises:
        ValueError: none is called so, or several begin so; lists those that are near.

    >>> model("llama 3 405b").name
    'Llama 3.1 405B'
    >>> model("llama 3")
    Traceback (most recent call last):
    ValueError: model 'llama 3' could be Llama 3.1 8B, Llama 3.1 70B, Llama 3.1 405B: \
say which
    """
    key = _key(name)
    begun = [found for k, found in _BY_KEY.items() if key and k.startswith(key)]
    if key in _BY_KEY:
        return _BY_KEY[key]
    names = ", ".join(dict.fromkeys(found.name for found in begun))
    if begun and "," not in names:
        return begun[0]
    if begun:
        raise ValueError(f"model {name!r} could be {names}: say which")
    near = difflib.get_close_matches(key, _BY_KEY, n=5, cutoff=0.5)
    near = [_BY_KEY[k] for k in near] or ALL
    names = ", ".join(dict.fromkeys(found.name for found in near))
    raise ValueError(f"no model is called {name!r}; nearest: {names}")


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).casefold())


def _read() -> tuple[dict[str, Source], dict[str, Model], dict[str, Model]]:
    """All sources, all models by id, and all of them by every name that they have."""
    rows = tomllib.loads(files(__package__).joinpath("models.toml").read_text("utf-8"))
    sources = {key: Source(key, **row) for key, row in rows.pop("sources").items()}

    def fact(value, source, note="", disagrees=()) -> Fact:
        others = tuple((v, sources[key]) for v, key in disagrees)
        return Fact(value, sources[source], note, others)

    def facts(entries: dict) -> dict[str, Fact]:
        found = {}
        for name, entry in entries.items():
            if "value" in entry:
                found[name] = fact(**entry)
            else:  # by convention
                found |= {f"{name}.{k}": one for k, one in facts(entry).items()}
        return found

    models, by_key = {}, {}
    for key, row in rows.items():
        aliases = row.pop("aliases", ())
        row["source"] = sources[row["source"]]
        row["published"] = facts(row.pop("published", {}))
        for part, kind in (("experts", Experts), ("latent", Latent)):
            if part in row:
                row[part] = kind(**row[part])
        models[key] = Model(**row)
        for named in (key, row["name"], *aliases):
            by_key[_key(named)] = models[key]
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
