"""CUDA-L2: matmul kernels that a program wrote, compared with NVIDIA's libraries.

`SHAPES` holds the published ratios for each of 1,000 shapes. `RELEASES` holds the GPUs
and formats that were measured, with the means that the README prints.

>>> found = RELEASES["a100_f16"]
>>> f"{found.mean('autotuned'):.3f} in the mean, {found.gain('autotuned'):.3f} in time"
'1.116 in the mean, 1.005 in time'
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from ..base.estimate import Estimate
from ..base.facts import Source
from ..base.units import short_repr
from ..hardware import chips, roofline
from ..hardware.chips import Chip
from .rows import named_rows

SOURCE = Source(
    "cuda_l2",
    "CUDA-L2, README and eval_results at dbe0177 (deepreinforce.ai, MIT licence)",
    "https://github.com/deepreinforce-ai/CUDA-L2/tree/"
    "dbe017722194bb33bafadfbcbb4a65ab6df95dc3",
    "vendor",
    "2026-11-28",
)
LIBRARIES = {
    "torch": "torch.matmul",
    "cublas": "cuBLAS",
    "heuristic": "cuBLASLt, heuristic",
    "autotuned": "cuBLASLt, autotuned",
}
MODES = ("offline", "server")


@dataclass(frozen=True)
class Shape:
    """One matmul, [m, k] · [k, n] in 16 bits, with its speedups.

    Args:
        m, n, k: rows of the result, its columns, and the contracted size.
        speedups: the speed of CUDA-L2 ÷ that of a library, by release, mode and
            library.
    """

    m: int
    n: int
    k: int
    speedups: Mapping[tuple[str, str, str], float] = field(repr=False)

    @property
    def flops(self) -> float:
        """2 · m · n · k."""
        return 2.0 * self.m * self.n * self.k

    def ideal(self, chip: Chip) -> float:
        """The lower bound in seconds, from `roofline.matmul` in fp16."""
        return _estimate(self.m, self.k, self.n, chip).lower

    def memory_bound(self, chip: Chip) -> bool:
        """Whether its intensity is too low to reach the peak of the chip."""
        found = _estimate(self.m, self.k, self.n, chip)
        return found.intensity < chip.intensity("fp16")


@dataclass(frozen=True)
class Release:
    """The measurements on one GPU with sums accumulated in one format.

    Args:
        key: its key in `RELEASES`.
        name: its name in words.
        chip: the GPU. The README says only A100; we take the card with 80 GB.
        printed: the mean gain that the README prints, as a share, by mode and library.
    """

    key: str
    name: str
    chip: Chip
    printed: Mapping[tuple[str, str], float] = field(repr=False)

    def speedups(
        self, library: str, mode: str = "offline", shapes: Iterable[Shape] = ()
    ) -> list[float]:
        """The published ratios, in the order of `shapes`; of all shapes if none given.

        Raises:
            ValueError: a library or mode that was not measured. The message lists those
                that were.
        """
        for name, given, known in (
            ("library", library, LIBRARIES),
            ("mode", mode, MODES),
        ):
            if not isinstance(given, str) or given not in known:
                raise ValueError(
                    f"{name} = {short_repr(given)}: must be one of {', '.join(known)}"
                )
        return [
            shape.speedups[self.key, mode, library] for shape in tuple(shapes) or SHAPES
        ]

    def mean(
        self, library: str, mode: str = "offline", shapes: Iterable[Shape] = ()
    ) -> float:
        """The mean of the ratios, with each shape counted once, as in the README."""
        found = self.speedups(library, mode, shapes)
        return math.fsum(found) / len(found)

    def gain(
        self, library: str, mode: str = "offline", shapes: Iterable[Shape] = ()
    ) -> float:
        """Time of the library ÷ that of CUDA-L2, if each shape runs once: Σts / Σt.

        Assumes:
            CUDA-L2 takes the roofline's time t for every shape, because only the ratios
            s of the times are published. If instead the library takes this time, the
            gain is Σt / Σ(t/s), which is smaller by up to 0.02.
        """
        some = tuple(shapes) or SHAPES
        times = [shape.ideal(self.chip) for shape in some]
        ratios = self.speedups(library, mode, some)
        saved = (t * s for t, s in zip(times, ratios, strict=True))
        return math.fsum(saved) / math.fsum(times)


@cache
def _estimate(m: int, k: int, n: int, chip: Chip) -> Estimate:
    return roofline.matmul(m, k, n, chip, "fp16")


def amdahl(share: float, speedup: float) -> float:
    """1 − p + p/s: new time ÷ old time, if a share p of the work is sped up s times.

    Args:
        share: p, from 0 to 1.
        speedup: s, above 0.

    Raises:
        ValueError: a share or speedup outside these ranges.

    Source:
        Amdahl, "Validity of the single processor approach" (AFIPS 1967).

    >>> round(amdahl(0.6, 1.3), 3)
    0.862
    """
    if not (0 <= share <= 1 and speedup > 0 and math.isfinite(speedup)):
        raise ValueError(
            f"share = {short_repr(share)}, speedup = {short_repr(speedup)}: must be a "
            "number from 0 to 1 and a finite number above 0"
        )
    return 1 - share + share / speedup


def _shapes() -> Iterable[Shape]:
    for row in named_rows("cuda_l2.csv"):
        m, n, k = (int(row.pop(name)) for name in "mnk")
        speedups = {}
        for column, ratio in row.items():
            release, mode, library = column.rsplit("_", 2)
            speedups[release, mode, library] = float(ratio)
        yield Shape(m, n, k, speedups)


def _printed(offline: str, server: str) -> dict[tuple[str, str], float]:
    """The README's two rows, in percent, in the order of its columns."""
    order = "torch", "cublas", "heuristic", "autotuned"
    return {
        (mode, library): float(percent) / 100
        for mode, row in zip(MODES, (offline, server), strict=True)
        for library, percent in zip(order, row.split(), strict=True)
    }


SHAPES = tuple(_shapes())
RELEASES = {
    release.key: release
    for release in (
        Release(
            "a100_f16",
            "A100, sums in fp16",
            chips.A100_80GB,
            _printed("22.0 19.2 16.8 11.4", "28.7 26.0 22.4 15.9"),
        ),
        Release(
            "a100_f32",
            "A100, sums in fp32",
            chips.A100_80GB,
            _printed("22.5 20.4 16.9 12.2", "25.1 21.5 19.9 12.7"),
        ),
        Release(
            "h100_f32",
            "H100, sums in fp32",
            chips.H100,
            _printed("19.8 17.5 28.8 7.0", "41.7 40.5 42.1 22.1"),
        ),
    )
}
