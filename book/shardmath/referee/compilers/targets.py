"""The machines that programs are compiled for, by name. This module needs no JAX."""

import contextlib
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ...base.units import positive_int, short_repr
from ...hardware.chips import CHIPS, Chip, find
from ...hardware.networks import NVLinkDomain, Torus
from ...hardware.networks.parse_name import NAME

TPUS = {  # libtpu's name of a TPU → the id of its record in `chips`
    "v4": "tpu_v4",
    "v5e": "tpu_v5e",
    "v5p": "tpu_v5p",
    "v6e": "tpu_v6e",
    "tpu7x": "tpu_7x",
}
COMPILERS = {  # the compilers of kept results, pinned in requirements-referee.txt
    "tpu": {"jax": "0.10.2", "libtpu": "0.0.42.1"},
    "cuda": {"jax": "0.10.2", "jax-cuda13-pjrt": "0.10.2"},
    "here": {},
}
HERE = "here"


@dataclass(frozen=True)
class Target:
    """A machine to compile for; `target` makes one from its name.

    Args:
        name: its full name, as `target` reads it.
        platform: "tpu" (compiled by libtpu), "cuda" (the CUDA plugin) or "here".
        chip: its record, or None for the devices here.
        shape: the sides of a TPU slice, (nodes, GPUs per node), or (devices,). (1,) is
            a single device, which is half a chip for TPU7x.
        slices: the number of TPU slices, joined by the data-centre network.
        options: compiler options for this target, in addition to the caller's.
    """

    name: str
    platform: str
    chip: Chip | None
    shape: tuple[int, ...]
    slices: int = 1
    options: tuple[tuple[str, object], ...] = ()

    @property
    def chips(self) -> int:
        """The number of chips in all slices or nodes."""
        return math.prod(self.shape) * self.slices

    @property
    def devices(self) -> int:
        """The number of JAX devices. A TPU7x chip has two."""
        if self.shape == (1,):
            return 1
        return self.chips * (self.chip.devices_per_chip if self.chip else 1)

    @property
    def memory(self) -> float | None:
        """Bytes of HBM per device, or None for the devices here."""
        return self.chip and self.chip.hbm_bytes / self.chip.devices_per_chip

    @property
    def compiler(self) -> Mapping[str, str]:
        """Package name → version, for the compiler of kept results."""
        return COMPILERS[self.platform]

    def __str__(self) -> str:
        if self.chip is None:
            return f"{self.name} ({_counted(self.devices, 'device')} here)"
        if self.shape == (1,):
            return f"{self.name} (one device, {self.chip.name})"
        many = _counted(self.chips, self.chip.name)
        if self.devices > self.chips:
            many += f", {self.devices:,} devices"
        return f"{self.name} ({many})"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def target(name: "str | Target") -> Target:
    """The machine with this name.

    Args:
        name: ``"v5p:8x8x8"``, a TPU as in `chips.find` and the sides of its slice;
            ``"v5e:4x4*2"``, two such slices on the data-centre network;
            ``"v5e:1"``, one device of a TPU, for a kernel;
            ``"h100:8"``, GPUs of one node; ``"h100:8x8"``, nodes × GPUs per node;
            ``"here:8"``, the first 8 devices of JAX in this process.

    Returns:
        A Target.

    Raises:
        ValueError: the kind is unknown, or the slice or node does not exist. The
            message says what would be valid.

    Assumes:
        A slice has whole trays of 2 × 2 chips, because libtpu requires them. All shapes
        of `networks.Torus` are accepted, including ones that can't be rented.

    >>> print(target("v5p:8x8x8"))
    v5p:8x8x8 (512 TPU v5p)
    >>> print(target("tpu7x:2x2x2"))
    tpu7x:2x2x2 (8 TPU 7x (Ironwood), 16 devices)
    >>> target("h100:8x8").devices, target("v5e:4x4*2").slices
    (64, 2)
    >>> target("v5p:3x3x3")
    Traceback (most recent call last):
    ValueError: target 'v5p:3x3x3': the first two sides must be even
    """
    if isinstance(name, Target):
        return name
    found = NAME.fullmatch(name) if isinstance(name, str) else None
    kinds = [*TPUS, *gpus(), HERE]
    if found is None:
        raise ValueError(
            f"target {short_repr(name)}: must be written like 'v5p:8x8x8', "
            "'v5e:4x4*2', 'h100:8x8' or 'here:8'"
        )
    kind = _kind(found["kind"])
    if kind not in kinds:
        near = difflib.get_close_matches(kind.lower(), kinds, cutoff=0.4)
        raise ValueError(
            f"target {short_repr(name)}: no compiler for {short_repr(kind)}; nearest: "
            f"{', '.join(near or kinds)}"
        )
    if found["shape"] is None:
        raise ValueError(
            f"target {short_repr(name)}: must say how many, such as {_SAID[kind]!r}"
        )
    shape = tuple(map(int, found["shape"].split("x")))
    slices = int(found["slices"] or 1)
    given = short_repr(name)
    positive_int(**{f"a side of {given}": min(shape), f"slices of {given}": slices})
    if kind in TPUS:
        return _tpu(name, kind, shape, slices)
    if slices > 1:
        raise ValueError(f"target {short_repr(name)}: only TPUs come in slices")
    return _gpu(name, kind, shape) if kind in gpus() else _here(name, shape)


@cache
def gpus() -> dict[str, dict]:
    """Id of a GPU in `chips` → its description for XLA; see ``gpus.toml``."""
    text = files(__package__).joinpath("gpus.toml").read_text("utf-8")
    rows = tomllib.loads(text)
    common = rows.pop("common")
    return {gpu: row | common for gpu, row in rows.items()}


_SAID = {"v4": "v4:4x4x4", "v5e": "v5e:4x4", "v5p": "v5p:4x4x4", "v6e": "v6e:4x4"}
_SAID |= {"tpu7x": "tpu7x:2x2x2", HERE: "here:8"} | {gpu: f"{gpu}:8" for gpu in gpus()}


def _kind(said: str) -> str:
    """The name of a kind in targets, such as tpu7x for ironwood; else `said` itself."""
    if said in (*TPUS, *gpus(), HERE):
        return said
    by_record = {record: kind for kind, record in TPUS.items()} | {g: g for g in gpus()}
    with contextlib.suppress(ValueError):
        return by_record.get(find(said).id, said)
    return said


def _tpu(name: str, kind: str, shape: tuple[int, ...], slices: int) -> Target:
    chip = CHIPS[TPUS[kind]]
    if shape == (1,) and slices == 1:
        return Target(f"{kind}:1", "tpu", chip, shape)
    try:
        Torus(chip, shape)
    except ValueError as error:
        raise ValueError(f"target {short_repr(name)}: {error}") from None
    if any(side % 2 for side in shape[:2]):
        raise ValueError(f"target {short_repr(name)}: the first two sides must be even")
    full = f"{kind}:{'x'.join(map(str, shape))}" + f"*{slices}" * (slices > 1)
    return Target(full, "tpu", chip, shape, slices)


def _gpu(name: str, kind: str, shape: tuple[int, ...]) -> Target:
    if len(shape) > 2:
        raise ValueError(
            f"target {short_repr(name)}: must be nodes x GPUs, such as '{kind}:8x8'"
        )
    chip, (nodes, each) = CHIPS[kind], (1, *shape)[-2:]
    try:
        NVLinkDomain(chip, each)
    except ValueError as error:
        raise ValueError(
            f"target {short_repr(name)}: {error}; write the number of nodes first, as "
            f"in '{kind}:8x8'"
        ) from None
    full = f"{kind}:{nodes}x{each}" if nodes > 1 else f"{kind}:{each}"
    return Target(full, "cuda", chip, (nodes, each))


def _here(name: str, shape: tuple[int, ...]) -> Target:
    if len(shape) > 1:
        raise ValueError(
            f"target {short_repr(name)}: must be a number of devices, as in here:8"
        )
    return Target(f"{HERE}:{shape[0]}", HERE, None, shape)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" + "s" * (what == "device" and n > 1)
