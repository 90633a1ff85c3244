"""Accelerators: the rates and sizes of one chip, each value with its source.

The numbers are in ``chips.toml``, one value per line. Every rate is per chip, dense and
in base units; every link bandwidth is one-way. A value that nobody published is
absent, and reading it raises a ``ValueError`` that says so.

>>> TPU_V5E.flops["bf16"], find("trillium").name, find("H-100").hbm_bandwidth
(197000000000000.0, 'TPU v6e (Trillium)', 3350000000000.0)
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from ..base.facts import VOCABULARY, Fact, Source, Unpublished, recorded, term
from ..base.records import HasFacts, named, plain
from ..base.tables import Absent
from ..base.units import bytes_per_value, positive, short_repr, shortened, show

CORES = {  # what each maker calls them
    "Google": "TensorCores",
    "NVIDIA": "SMs",
    "AMD": "Compute units",
    "AWS": "NeuronCores",
}


class ByPrecision(dict[str, float]):
    """Rates of one chip by precision; an unpublished one raises ValueError."""

    def __init__(self, rates: dict[str, float], chip: str, what: str):
        super().__init__(rates)
        self._chip, self._what = chip, what

    def __getitem__(self, precision: str) -> float:
        bytes_per_value(precision)  # an unknown precision is another error
        return super().__getitem__(precision)

    def __missing__(self, precision: str) -> float:
        chip = shortened(self._chip)
        what = f"{chip}: no {self._what} is published for {short_repr(precision)}"
        raise Unpublished(f"{what}; published: {', '.join(self) or 'none'}")


@dataclass(frozen=True, repr=False, eq=False)
class Chip(HasFacts):
    """One accelerator. Rates are per chip, dense, in base units; links are one-way.

    `facts` has every value under its name ("hbm_bytes", "flops.bf16"). Values without a
    precision are attributes too; `facts.VOCABULARY` defines them. `onchip` names the
    software-managed memory next to the matrix units (VMEM, SMEM, …), if known. If
    `without_hbm` is true, the chip has no other memory.

    >>> TPU_V5E
    TPU v5e: 197 TFLOPs/s in bf16, 819 GB/s from memory, 241 FLOPs per byte.
    """

    id: str
    name: str
    vendor: str
    facts: Mapping[str, Fact]
    onchip: str = ""
    aliases: tuple[str, ...] = ()
    without_hbm: bool = False

    def fact(self, name: str) -> Fact:
        """The fact called `name`, with its source; see `HasFacts.fact`.

        Raises:
            Absent: a ValueError; the fact is about HBM, and the chip has none.
            Unpublished, ValueError: as for `HasFacts.fact`.

        >>> GROQ_LPU.hbm_bandwidth
        Traceback (most recent call last):
        shardmath.base.tables.Absent: Groq LPU has no HBM, so no 'hbm_bandwidth'; all \
of its memory is SRAM: see onchip_bytes and onchip_bandwidth
        """
        asked = name if isinstance(name, str) and name in VOCABULARY else ""
        if self.without_hbm and asked.startswith("hbm_"):
            raise Absent(
                f"{shortened(self.name)} has no HBM, so no {name!r}; all of its memory "
                f"is {self.onchip}: see onchip_bytes and onchip_bandwidth"
            )
        return super().fact(name)

    @property
    def flops(self) -> ByPrecision:
        """Dense peak by precision, FLOPs/s (OPs/s for integers)."""
        return self._rates("flops.", "dense peak")

    @property
    def achieved(self) -> ByPrecision:
        """Best matmul rate that anybody measured, by precision, FLOPs/s."""
        return self._rates("achieved.", "measured matmul rate")

    def __getattr__(self, name: str) -> float:
        """Every fact of the vocabulary is an attribute: ``H100.cores``."""
        if name not in VOCABULARY:
            given = short_repr(name)
            raise AttributeError(f"a chip has no {given}", name=name, obj=self)
        return self.fact(name).value

    @property
    def memory_bytes(self) -> float:
        """Bytes of HBM that a program can use; all of them if no source says how many.

        >>> f"{TPU_V5E.memory_bytes / 2**30} of {TPU_V5E.hbm_bytes / 2**30:.0f} GiB"
        '15.75 of 16 GiB'
        """
        name = "hbm_usable_bytes"
        return self.fact(name if name in self.facts else "hbm_bytes").value

    @property
    def memory_bandwidth(self) -> float:
        """Bytes per second of the memory that holds the weights: HBM, or SRAM if the
        chip has no HBM.

        >>> H100.memory_bandwidth, GROQ_LPU.memory_bandwidth
        (3350000000000.0, 80000000000000.0)
        """
        name = "onchip_bandwidth" if self.without_hbm else "hbm_bandwidth"
        return self.fact(name).value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.facts]

    def words(self, name: str) -> str:
        """The words for the fact `name` on this chip; other attributes keep their name.

        >>> TPU_V5E.words("onchip_bytes"), TPU_V5E.words("flops.int8")
        ('VMEM capacity', 'int8 peak')
        """
        if name in ("id", "name", "vendor", "onchip"):
            return name
        cores = CORES.get(self.vendor, "Cores")
        return term(name).words.format(onchip=self.onchip, cores=cores)

    def cell(self, name: str) -> tuple[object, str]:
        """Value and unit of a fact or of an attribute such as `name`, for `compare`.

        >>> TPU_V5E.cell("hbm_bandwidth"), TPU_V5E.cell("year")
        ((819000000000.0, 'bytes/s'), (2023, '.0f'))
        """
        if name in ("id", "name", "vendor", "onchip"):
            return getattr(self, name), ""
        unit = ".0f" if name == "year" else term(name).unit  # a year has no comma
        return self.fact(name).value, unit

    @property
    def devices_per_chip(self) -> int:
        """The number of JAX devices of one chip: 1 unless the record says otherwise."""
        fact = self.facts.get("devices_per_chip")
        return fact.value if fact else 1

    def intensity(self, precision: str = "bf16") -> float:
        """Critical intensity: flops / hbm_bandwidth, in FLOPs per byte.

        Work with fewer FLOPs per byte of memory traffic is memory-bound. Both rates are
        peaks of the data sheet: if a program reaches 80 % of the FLOPs/s and 90 % of
        the bandwidth, its critical intensity is 0.8 / 0.9 times this value.

        >>> round(TPU_V5E.intensity("bf16"), 1)
        240.5
        """
        return self.flops[precision] / self.hbm_bandwidth

    @property
    def vector_flops(self) -> float:
        """Operations per second of the vector units: cores · lanes · clock.

        Each lane does one fp32 operation per clock cycle. A data sheet that counts a
        multiply-add as two operations gives twice this rate. For Hopper, the record has
        the clock of the Tensor Cores, and the clock of the lanes is 8 % higher.

        >>> show(H100.vector_flops, "FLOPs/s"), show(TPU_V5P.vector_flops, "FLOPs/s")
        ('30.9 TFLOPs/s', '14.3 TFLOPs/s')
        """
        return self.cores * self.lanes * self.clock

    @property
    def half(self) -> str:
        """The 16-bit format of its matmuls: bf16, or fp16 if it has no bf16.

        >>> H100.half, V100.half
        ('bf16', 'fp16')
        """
        return "bf16" if "bf16" in self.flops else "fp16"

    def _rates(self, prefix: str, what: str) -> ByPrecision:
        rates = {
            name.removeprefix(prefix): fact.value
            for name, fact in self.facts.items()
            if name.startswith(prefix)
        }
        return ByPrecision(rates, self.name, what)

    def __repr__(self) -> str:
        kind = self.onchip if self.without_hbm else "memory"
        memory = f"{show(self.memory_bandwidth, 'bytes/s')} from {kind}"
        if not self.flops:
            return f"{self.name}: no dense peak is published, {memory}."
        precision = next(p for p in ("bf16", "fp16", *self.flops) if p in self.flops)
        rate = show(self.flops[precision], "FLOPs/s")
        balance = f"{self.flops[precision] / self.memory_bandwidth:.0f} FLOPs per byte"
        return f"{self.name}: {rate} in {precision}, {memory}, {balance}."


def find(name: str) -> Chip:
    """The chip that `name` means; case, spaces, dashes and vendor names do not matter.

    Names, ids, nicknames ("Ironwood") and JAX device kinds ("TPU v5 lite") all work,
    and so does the beginning of such a name if it fits only one chip.

    Raises:
        ValueError: `name` means no chip or several; the message lists them, or similar
            names.

    >>> find("v5p").name, find("nvidia h100 sxm").name, find("mi-300x").name
    ('TPU v5p', 'H100', 'MI300X')
    >>> find("v5")
    Traceback (most recent call last):
    ValueError: chip 'v5' could be TPU v5e, TPU v5p: say which
    """
    some = ", ".join(chip.name for chip in (TPU_V5E, H100, MI300X, TRAINIUM2))
    known = f"chips.ALL has {len(ALL)}, such as {some}"
    families = {_bare(family): chips for family, chips in FAMILIES.items()}
    if isinstance(name, str) and (chips := families.get(_bare(name))):
        several = ", ".join(CHIPS[key].name for key in chips)
        raise ValueError(f"chip {short_repr(name)} could be {several}: say which")
    return named("chip", name, _BY_KEY, known, _bare)


def measured(name: str, flops: Mapping[str, float], hbm_bandwidth: float) -> Chip:
    """A chip with the reader's own measurements, to be used like any other.

    Args:
        name: the name of the chip.
        flops: matmul rate by precision, FLOPs/s.
        hbm_bandwidth: bandwidth of the main memory, bytes/s.

    Raises:
        ValueError: rates that are not a mapping or not above 0, or an unknown
            precision.

    >>> measured("this laptop", {"fp32": 2e11}, 2e10)
    this laptop: 200 GFLOPs/s in fp32, 20 GB/s from memory, 10 FLOPs per byte.
    """
    if not isinstance(flops, Mapping):
        wanted = 'must map precisions to rates, such as {"fp32": 2e11}'
        raise ValueError(f"flops = {short_repr(flops)}: {wanted}")
    if not flops:
        raise ValueError("flops = {}: must have the rate of at least one precision")
    for precision in flops:
        bytes_per_value(precision)  # raises for an unknown one
    bandwidth, *rates = positive(hbm_bandwidth=hbm_bandwidth, **flops)
    source = Source("measured", "measured by the reader", "", "measured", "here")
    named = zip(flops, rates, strict=True)
    facts = {f"flops.{p}": Fact(rate, source) for p, rate in named}
    facts["hbm_bandwidth"] = Fact(bandwidth, source)
    return Chip(_key(name), name, "", facts)


def require_chip(chip: object) -> Chip:
    """`chip`, if it is a record of a chip.

    Raises:
        ValueError: it is anything else; the message quotes it.

    >>> require_chip("H100")
    Traceback (most recent call last):
    ValueError: chip = 'H100': must be a Chip, such as chips.TPU_V5E or find("H100")
    """
    if not isinstance(chip, Chip):
        wanted = 'must be a Chip, such as chips.TPU_V5E or find("H100")'
        raise ValueError(f"chip = {short_repr(chip)}: {wanted}")
    return chip


def _bare(name: str) -> str:
    """`name` without its maker.

    >>> _bare("AWS Trainium2"), _bare("Google Cloud TPU v4")
    ('trainium2', 'tpuv4')
    """
    makers = "google|cloud|nvidia|tesla|amd|instinct|intel|habana|amazon|aws|cerebras"
    return re.sub(rf"^({makers})+", "", plain(name))


def _key(name: str) -> str:
    """`name` as the key of a lookup: without its maker and without "TPU"."""
    return re.sub(r"^tpu(?=.)", "", _bare(name))


def _read() -> tuple[dict[str, Source], tuple[Chip, ...]]:
    """All sources and all chips of ``chips.toml``."""
    rows = tomllib.loads(files(__package__).joinpath("chips.toml").read_text("utf-8"))
    sources = {key: Source(key, **row) for key, row in rows.pop("sources").items()}

    def chip(key: str, row: dict) -> Chip:
        facts, about = {}, {}
        for name, entry in row.items():
            if not isinstance(entry, dict):
                about[name] = tuple(entry) if isinstance(entry, list) else entry
            elif "value" in entry:
                facts[name] = recorded(sources, **entry)
            else:  # by precision
                for precision, one in entry.items():
                    facts[f"{name}.{precision}"] = recorded(sources, **one)
        return Chip(id=key, facts=facts, **about)

    return sources, tuple(chip(key, row) for key, row in rows.items())


SOURCES, ALL = _read()
CHIPS = {chip.id: chip for chip in ALL}
# Names of a generation, which do not say which of its chips is meant.
FAMILIES = {
    "Hopper": ("h100", "h800", "h200"),
    "Blackwell": ("b200", "gb200", "b300", "gb300"),
}
_BY_KEY = {_key(k): chip for chip in ALL for k in (chip.id, chip.name, *chip.aliases)}
_BY_KEY |= {"tpu" + k: chip for k, chip in _BY_KEY.items() if chip.vendor == "Google"}

TPU_V2 = CHIPS["tpu_v2"]
TPU_V3 = CHIPS["tpu_v3"]
TPU_V4 = CHIPS["tpu_v4"]
TPU_V5E = CHIPS["tpu_v5e"]
TPU_V5P = CHIPS["tpu_v5p"]
TPU_V6E = CHIPS["tpu_v6e"]
TPU_7X = CHIPS["tpu_7x"]
TPU_8T = CHIPS["tpu_8t"]
TPU_8I = CHIPS["tpu_8i"]
V100 = CHIPS["v100"]
A100_40GB = CHIPS["a100_40gb"]
A100_80GB = CHIPS["a100_80gb"]
H100 = CHIPS["h100"]
H100_NVL = CHIPS["h100_nvl"]
H800 = CHIPS["h800"]
H200 = CHIPS["h200"]
H200_NVL = CHIPS["h200_nvl"]
GH200 = CHIPS["gh200"]
B200 = CHIPS["b200"]
GB200 = CHIPS["gb200"]
B300 = CHIPS["b300"]
GB300 = CHIPS["gb300"]
RUBIN = CHIPS["rubin"]
L40S = CHIPS["l40s"]
MI250X = CHIPS["mi250x"]
MI300X = CHIPS["mi300x"]
MI325X = CHIPS["mi325x"]
MI355X = CHIPS["mi355x"]
GAUDI2 = CHIPS["gaudi2"]
GAUDI3 = CHIPS["gaudi3"]
TRAINIUM1 = CHIPS["trainium1"]
TRAINIUM2 = CHIPS["trainium2"]
TRAINIUM3 = CHIPS["trainium3"]
MTT_S4000 = CHIPS["mtt_s4000"]
GROQ_LPU = CHIPS["groq_lpu"]
WSE_3 = CHIPS["wse_3"]
