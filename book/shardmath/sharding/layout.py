"""A sharded array: which device of a mesh holds which block of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from ..base.tables import Table
from ..base.units import bytes_per_value, short_repr, show
from .holders import holders
from .machine import chip_of
from .notation import subscript

Names = tuple[str, ...]  # of mesh axes, major first
Placed = tuple[Names, ...]  # for every dimension, the axes that split it


@dataclass(frozen=True, repr=False)
class ShardedArray:
    """An array on a mesh; `sharding.array` makes one from ``"bf16[B_X, D]"``.

    Args:
        dims: names of the dimensions.
        sizes: their global sizes.
        placed: for every dimension, the mesh axes that split it, major first.
        mesh: names and sizes of all mesh axes, in device order (row-major).
        precision: the format of its values, a key of `units.PRECISION_BYTES`.
        unreduced: axes along which every device holds one term of a sum.
        name: printed before the bracket; if it is empty, the precision is printed.
    """

    dims: tuple[str, ...]
    sizes: tuple[int, ...]
    placed: Placed
    mesh: tuple[tuple[str, int], ...]
    precision: str = "bf16"
    unreduced: Names = ()
    name: str = ""

    def ways(self, axes: Names) -> int:
        """The number of parts into which `axes` split a dimension.

        Raises:
            ValueError: `axes` are not axes of the mesh.
        """
        sizes = dict(self.mesh)
        try:
            return prod([sizes[axis] for axis in axes])
        except (KeyError, TypeError):
            known = ", ".join(sizes)
            raise ValueError(
                f"axes = {short_repr(axes)}: must be axes of the mesh, {known}"
            ) from None

    @property
    def axes(self) -> Names:
        """The mesh axes that split a dimension."""
        return tuple(axis for axes in self.placed for axis in axes)

    @property
    def devices(self) -> int:
        return prod(size for _, size in self.mesh)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of blocks along every dimension."""
        return tuple(map(self.ways, self.placed))

    @property
    def local_shape(self) -> tuple[int, ...]:
        """Shape of the block that one device holds."""
        return tuple(s // n for s, n in zip(self.sizes, self.grid, strict=True))

    @property
    def local_sizes(self) -> tuple[float, ...]:
        """`local_shape` without rounding, for sizes that the axes do not divide."""
        return tuple(s / n for s, n in zip(self.sizes, self.grid, strict=True))

    @property
    def nbytes(self) -> float:
        """Bytes of one whole copy."""
        return bytes_per_value(self.precision) * prod(self.sizes)

    @property
    def local_nbytes(self) -> float:
        """Bytes that one device holds."""
        return self.nbytes / prod(self.grid)

    @property
    def total_nbytes(self) -> float:
        """Bytes that all devices together hold, including copies and terms of sums."""
        return self.local_nbytes * self.devices

    def hbm_seconds(self, machine) -> float:
        """Seconds that every device needs to read its block from HBM once.

        Args:
            machine: a `Chip`, or a `Mesh` of chips of one kind.

        Raises:
            ValueError: any other machine.
        """
        return self.local_nbytes / chip_of(machine).hbm_bandwidth

    @property
    def copies(self) -> int:
        """How many devices hold equal values: the product of the unused axes' sizes."""
        return self.devices // self.ways(self.axes + self.unreduced)

    @property
    def spec(self) -> tuple[str | Names | None, ...]:
        """Arguments of `jax.sharding.PartitionSpec`: ``jax.P(*array.spec)``.

        It leaves out partial sums, which JAX too keeps separately, as `unreduced`.
        """
        entries = []
        for axes in self.placed:
            if not axes:
                entries.append(None)
            else:
                entries.append(axes[0] if len(axes) == 1 else axes)
        return tuple(entries)

    def places(self) -> Iterator[dict[str, int]]:
        """The coordinates of every device, in device order."""
        names = [name for name, _ in self.mesh]
        for at in product(*(range(size) for _, size in self.mesh)):
            yield dict(zip(names, at, strict=True))

    def index(self, place: Mapping[str, int]) -> tuple[int, ...]:
        """The index of the block that the device at `place` holds, by dimension.

        Raises:
            ValueError: `place` lacks an axis, or is outside the mesh.
        """
        if not isinstance(place, Mapping):
            raise ValueError(
                f"place = {short_repr(place)}: must be coordinates by axis, such as "
                "{'X': 0}"
            )
        sizes, found = dict(self.mesh), []
        for axes in self.placed:
            n = 0
            for axis in axes:  # major first
                if place.get(axis) not in range(sizes[axis]):
                    raise ValueError(
                        f"place = {short_repr(dict(place))}: {axis} must be from 0 to "
                        f"{sizes[axis] - 1}"
                    )
                n = n * sizes[axis] + place[axis]
            found.append(n)
        return tuple(found)

    def block(self, place: Mapping[str, int]) -> tuple[slice, ...]:
        """The part of the whole array that the device at `place` holds.

        >>> a = ShardedArray(("I", "J"), (8, 6), (("X",), ()), (("X", 4),))
        >>> a.block({"X": 1})
        (slice(2, 4, None), slice(0, 6, None))
        """
        index = zip(self.index(place), self.local_shape, strict=True)
        return tuple(slice(n * size, (n + 1) * size) for n, size in index)

    @property
    def devices_by_block(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The devices that hold each block, in device order, keyed by block index.

        >>> a = ShardedArray(("I", "J"), (8, 6), (("X",), ()), (("X", 2), ("Y", 2)))
        >>> a.devices_by_block
        {(0, 0): (0, 1), (1, 0): (2, 3)}
        """
        found = {index: [] for index in product(*map(range, self.grid))}
        for device, place in enumerate(self.places()):
            found[self.index(place)].append(device)
        return {index: tuple(devices) for index, devices in found.items()}

    def moved(self, placed: Placed, unreduced: Names = ()) -> "ShardedArray":
        """The same array placed in another way."""
        return replace(self, placed=placed, unreduced=unreduced)

    def resized(self, dim: str, size: float) -> "ShardedArray":
        """The same array with another size of `dim`, if it has that dimension."""
        pairs = zip(self.dims, self.sizes, strict=True)
        return replace(self, sizes=tuple(size if d == dim else s for d, s in pairs))

    @property
    def state(self) -> tuple[Placed, Names]:
        """The placement of axes and the open sums; collectives change only these."""
        return self.placed, self.unreduced

    @property
    def divides(self) -> bool:
        """Whether the blocks of every dimension are equally long."""
        return not any(s % n for s, n in zip(self.sizes, self.grid, strict=True))

    @property
    def possible(self) -> bool:
        """Whether the mesh has all axes, none is used twice, and blocks are equal."""
        used = self.axes + self.unreduced
        known = {name for name, _ in self.mesh}
        return len({*used}) == len(used) and {*used} <= known and self.divides

    @property
    def table(self) -> Table:
        """The devices that hold each block."""
        return holders(self)

    @property
    def notation(self) -> str:
        """The array in the notation of the book, such as ``A[I_X, J]{U_Y}``."""
        names = [name for name, _ in self.mesh]
        dims = (
            f"{dim}_{subscript(axes, names)}" if axes else dim
            for dim, axes in zip(self.dims, self.placed, strict=True)
        )
        open_sums = subscript(self.unreduced, names)
        partial = f"{{U_{open_sums}}}" if self.unreduced else ""
        return f"{self.name or self.precision}[{', '.join(dims)}]{partial}"

    def __str__(self) -> str:
        text = f"{self.notation}: {list(self.sizes)} in {self.precision}, "
        text += show(self.nbytes, "bytes")
        if self.devices > 1:
            text += (
                f"; each of {self.devices} devices holds {list(self.local_shape)}, "
                f"{show(self.local_nbytes, 'bytes')}"
            )
        if self.copies > 1:
            text += f", on {self.copies} devices alike"
        if self.unreduced:
            text += f", one of {self.ways(self.unreduced)} terms of a sum"
        return text

    def __repr__(self) -> str:
        return f"<{self}>"
