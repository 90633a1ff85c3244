"""Latencies, grids and NVSwitches, each value with its source, from ``networks.toml``.

>>> LATENCY["leaf"].value, GRIDS["tpu_v5e"]["closes"].source.key
(2.8e-06, 'book')
"""

import tomllib
from importlib.resources import files

from ...base.facts import Fact, Source, Unpublished, recorded
from ...base.records import named, plain
from ...base.tables import Absent
from ..chips import SOURCES, Chip
from .switches import NVSwitch


def nvswitch(of: str | Chip) -> NVSwitch:
    """The NVSwitch with this name, or the one that joins GPUs of this kind.

    Case, spaces and dashes of a name do not matter. For a chip, the result is the
    switch of the chip's generation of NVLink.

    Raises:
        ValueError: no NVSwitch has that name, or several begin with it (the message
            lists similar ones); or the chip has no NVLink, or its NVSwitch has no
            record.

    >>> from shardmath.hardware.chips import A100_80GB, B200
    >>> nvswitch(B200).ports, nvswitch(A100_80GB).adds
    (72, False)
    >>> nvswitch("NVSwich 3")
    Traceback (most recent call last):
    ValueError: no NVSwitch is called 'NVSwich 3'; nearest: NVSwitch 3, NVSwitch 4, \
NVSwitch 2, NVSwitch 1
    """
    if isinstance(of, Chip):
        must_have_nvlink(of)
        for switch in NVSWITCHES:
            if switch.nvlink == of.nvlink:
                return switch
        raise Unpublished(f"{of.name}: no record of the switches of NVLink {of.nvlink}")
    some = ", ".join(switch.name for switch in NVSWITCHES)
    return named("NVSwitch", of, _BY_KEY, f"known: {some}")


def must_have_nvlink(chip: Chip) -> None:
    """Raise unless `chip` is by NVIDIA, because no other GPUs have NVLink."""
    if chip.vendor != "NVIDIA":
        raise Absent(f"{chip.name}: must be an NVIDIA GPU to have NVLink")


Facts = dict[str, Fact]


def _read() -> tuple[Facts, dict[str, Facts], dict[str, Facts], tuple[NVSwitch, ...]]:
    """Latencies by level, NCCL's by protocol, grids by the chip's id, NVSwitches."""
    text = files(__package__).joinpath("networks.toml").read_text("utf-8")
    rows = tomllib.loads(text)
    sources = SOURCES | {key: Source(key, **r) for key, r in rows["sources"].items()}

    def facts(table: dict[str, dict]) -> Facts:
        found = {}
        for name, row in table.items():
            value = row["value"]
            value = tuple(value) if isinstance(value, list) else value
            found[name] = recorded(sources, **row | {"value": value})
        return found

    def nvswitch(key: str, row: dict) -> NVSwitch:
        stated = {name: row.pop(name) for name in [*row] if isinstance(row[name], dict)}
        aliases = tuple(row.pop("aliases", ()))
        return NVSwitch(id=key, facts=facts(stated), aliases=aliases, **row)

    protocols = {key: facts(row) for key, row in rows["nccl"].items()}
    grids = {key: facts(row) for key, row in rows["grid"].items()}
    switches = tuple(nvswitch(key, row) for key, row in rows["nvswitch"].items())
    return facts(rows["latency"]), protocols, grids, switches


LATENCY, NCCL, GRIDS, NVSWITCHES = _read()
_BY_KEY = {plain(k): s for s in NVSWITCHES for k in (s.id, s.name, *s.aliases)}
