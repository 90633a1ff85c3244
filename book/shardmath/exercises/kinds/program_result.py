"""What a program computed on its devices, its arguments, and the right result."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Spec = tuple[str | tuple[str, ...] | None, ...]  # as in `jax.P(*spec)`
Index = tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class ProgramResult:
    """The arguments of a program, the right result, and the result on each device.

    Args:
        spec: a function from the whole arguments to the right result.
        arrays: the whole arguments.
        wanted: the whole right result.
        got: the array on each device, in the order of the mesh.
        index: which part of the result each device should hold.
        rtol: how far off a value may be, relative to the largest value of the result.
        mesh: size by axis name; empty for one device.
        in_specs: how each argument is sharded, one entry per dimension.
    """

    spec: Callable
    arrays: Sequence
    wanted: object
    got: Sequence
    index: Sequence[Index]
    rtol: float
    mesh: Mapping[str, int] = field(default_factory=dict)
    in_specs: Sequence[Spec] = ()

    @property
    def near(self) -> float:
        """How far off a value may be."""
        return self.rtol * abs(self.wanted).max()

    @property
    def parts(self) -> list:
        """The part of the right result that each device should hold."""
        return [self.wanted[index] for index in self.index]

    @property
    def whole(self):
        """The whole result, put together from what the devices hold."""
        import numpy as np  # not at the top: a page judges numbers without it

        whole = np.empty_like(self.wanted)
        for got, index in zip(self.got, self.index, strict=True):
            whole[index] = got
        return whole

    @property
    def wrong(self) -> list[int]:
        """The numbers of the devices that hold wrong values."""
        pairs = zip(self.got, self.parts, strict=True)
        return [k for k, (got, part) in enumerate(pairs) if not self.same(got, part)]

    def same(self, got, wanted, scale: float = 1.0) -> bool:
        """Whether two arrays agree within the tolerance, times max(1, `scale`)."""
        import numpy as np  # not at the top: a page judges numbers without it

        if got.shape != wanted.shape:
            return False
        near = self.near * max(1.0, scale)
        return bool(np.allclose(got, wanted, rtol=0, atol=near))

    def holds(self, parts: Sequence) -> bool:
        """Whether every device holds its entry of `parts`, within the tolerance."""
        import numpy as np

        most = abs(self.wanted).max() or 1.0
        for got, part in zip(self.got, parts, strict=True):
            scale = np.abs(part).max(initial=0) / most  # a sum is larger than its mean
            if not self.same(got, part, scale if np.isfinite(scale) else 1.0):
                return False
        return True

    def cut(self, result) -> list | None:
        """What each device would hold of an alternative result.

        Args:
            result: the whole result, or a list with one entry per device, each either a
                whole result or the part that the device holds.

        Returns:
            One array per device, or None if the list has another length.
        """
        found = result if isinstance(result, list) else [result] * len(self.got)
        if len(found) != len(self.got):
            return None
        return [
            self._cut(one, index) for one, index in zip(found, self.index, strict=True)
        ]

    def _cut(self, one, index: Index):
        """A device's part of an array, cut only along dimensions of the full size."""
        if one.ndim != self.wanted.ndim:
            return one
        sizes = zip(one.shape, self.wanted.shape, index, strict=True)
        return one[tuple(at if n == whole else slice(None) for n, whole, at in sizes)]


def devices(numbers: Sequence[int], of: int) -> str:
    """Devices in words, such as "devices 1 to 7", or "" if these are all devices.

    >>> devices([1, 2, 3], 8), devices([5], 8), devices([0, 2], 8), devices([0, 1], 2)
    ('devices 1 to 3', 'device 5', 'devices 0 and 2', '')
    """
    if len(numbers) == of:
        return ""
    if len(numbers) == 1:
        return f"device {numbers[0]}"
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and last - first == len(numbers) - 1:
        return f"devices {first} to {last}"
    return f"devices {', '.join(map(str, numbers[:-1]))} and {last}"


def own_results(run: ProgramResult, axes: tuple[str, ...]) -> list | None:
    """The right result of each device's own arguments, if only `axes` split arrays."""
    import numpy as np

    found: dict[tuple[int, ...], object] = {}
    order = []
    for place in _places(run.mesh):
        at = tuple(place[axis] for axis in axes)
        order.append(at)
        if at in found:
            continue
        parts = [
            array[_part(array.shape, spec, place, run.mesh, axes)]
            for array, spec in zip(run.arrays, run.in_specs, strict=True)
        ]
        try:
            found[at] = np.asarray(run.spec(*parts))
        except Exception:  # the spec need not be defined for shapes of parts
            return None
    return [found[at] for at in order]


def totals(run: ProgramResult, axes: tuple[str, ...], own: list) -> list:
    """For each device, the sum of the results of all devices along `axes`."""
    rest = [axis for axis in run.mesh if axis not in axes]
    places = list(_places(run.mesh))
    keys = [tuple(place[axis] for axis in rest) for place in places]
    return [sum(o for o, k in zip(own, keys, strict=True) if k == key) for key in keys]


def _part(shape, spec: Spec, place: Mapping[str, int], mesh, axes) -> tuple:
    """The index of an array's part at `place`, if only `axes` split the array."""
    import numpy as np

    found = []
    for n, entry in itertools.zip_longest(shape, spec):
        names = (entry,) if isinstance(entry, str) else entry or ()
        rows = np.arange(n).reshape([mesh[name] for name in names] + [-1])
        at = tuple(place[name] if name in axes else slice(None) for name in names)
        found.append(rows[at].reshape(-1))
    return np.ix_(*found)


def subsets(mesh: Mapping[str, int]) -> list[tuple[str, ...]]:
    """All sets of one axis or more, the largest sets first."""
    return [
        axes
        for count in range(len(mesh), 0, -1)
        for axes in itertools.combinations(mesh, count)
    ]


def _places(mesh: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The place of each device along every axis, in the order of the mesh."""
    for at in itertools.product(*(range(n) for n in mesh.values())):
        yield dict(zip(mesh, at, strict=True))
