"""Places operands on a mesh, and compiles, reads and runs a JAX function there."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import jax
import numpy as np

from ...base.units import short_repr, show
from ...collectives import Collective
from ...sharding import ShardedArray, notation
from ...sharding.bind_axes import axis_words
from .. import hlo, ledger
from ..hlo import CompiledCollective

Placement = str | ShardedArray | jax.P | tuple

DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def spec(placement: Placement, mesh: Mapping[str, int] | None = None) -> jax.P:
    """A placement as JAX's `PartitionSpec`; partial sums are `unreduced`.

    Args:
        placement: a line such as ``"A[I_X, J]"``, an array of `sharding`, a `jax.P` or
            a tuple of its arguments.
        mesh: size by axis name, to split a line's subscripts into axes. Without it,
            each letter of a subscript in capitals is an axis, and any other subscript
            is a single axis.

    Raises:
        ValueError: the line is not in the notation, `placement` is something else, or
            the mesh lacks an axis.

    >>> spec("A[I_XY, J]"), spec((None, "X")), spec("A[I_data, J]")
    (P(('X', 'Y'), None), P(None, 'X'), P('data', None))
    """
    if isinstance(placement, jax.P):
        return placement
    if isinstance(placement, tuple):
        return jax.P(*placement)
    if isinstance(placement, ShardedArray):
        return jax.P(*placement.spec, unreduced=set(placement.unreduced))
    if not isinstance(placement, str):
        raise ValueError(
            f"placement {short_repr(placement)}: must be a line such as 'A[I_X, J]', "
            "an array of `sharding`, a jax.P or a tuple of its arguments"
        )
    line = notation.parse(placement)
    if len(line.left) > 1 or line.right:
        raise ValueError(f"placement {short_repr(placement)}: must be one array")
    (term,) = line.left
    names = [_axes(dim.axes, mesh) for dim in term.dims]
    parts = [axes[0] if len(axes) == 1 else axes or None for axes in names]
    return jax.P(*parts, unreduced=set(_axes(term.unreduced, mesh)))


def _axes(words: tuple, mesh: Mapping[str, int] | None) -> tuple[str, ...]:
    """The axes in the subscripts of one dimension."""
    if mesh is not None:
        return tuple(word.text for word in axis_words(words, dict(mesh)))
    letters = (w.text if w.text.isupper() else (w.text,) for w in words)
    return tuple(axis for group in letters for axis in group)


def place(values: object, mesh: jax.sharding.Mesh, placement: Placement) -> jax.Array:
    """`values` on the devices of `mesh`, sharded as `placement` says.

    Raises:
        ValueError: `mesh` is not a `jax.sharding.Mesh`, or `spec` raises the error.

    >>> mesh = jax.make_mesh((4, 2), ("X", "Y"))
    >>> jax.typeof(place(np.ones((8, 6), "float32"), mesh, "A[I_X, J_Y]"))
    ShapedArray(float32[8@X,6@Y])
    """
    if not isinstance(mesh, jax.sharding.Mesh):
        raise ValueError(
            f"mesh = {short_repr(mesh)}: must be one that jax.make_mesh returns"
        )
    return jax.device_put(values, jax.NamedSharding(mesh, spec(placement, mesh.shape)))


def drawn(
    mesh: jax.sharding.Mesh,
    *arrays: ShardedArray,
    dtype: str | None = None,
    seed: int = 0,
) -> list[jax.Array]:
    """Arrays of random values (normal, mean 0, variance 1), placed as `arrays` say.

    Args:
        mesh: a JAX mesh with the axes of the arrays.
        arrays: arrays of `sharding`, which give shape and placement.
        dtype: JAX's name of the dtype. By default that of each array.
        seed: the same seed draws the same numbers.

    Raises:
        ValueError: an argument is not an array of `sharding`, or it has a format for
            which there are no random values here, such as int8.

    >>> from shardmath.sharding import array
    >>> mesh = jax.make_mesh((4, 2), ("X", "Y"))
    >>> (x,) = drawn(mesh, array("f32[I_X, J_Y]", mesh.shape, I=8, J=6))
    >>> x.shape, x.addressable_shards[0].data.shape
    ((8, 6), (2, 3))
    """
    rng = np.random.default_rng(seed)
    found = []
    for one in arrays:
        kind = _dtype(one, dtype)
        values = jax.numpy.asarray(rng.standard_normal(one.shape), kind)
        found.append(place(values, mesh, one))
    return found


def abstract(
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh,
    *arrays: ShardedArray,
    dtype: str | None = None,
) -> list[jax.ShapeDtypeStruct]:
    """The shapes of `arrays` with their placement, to compile without allocating them.

    Arguments and errors are those of `drawn`, but `mesh` may have no devices.

    >>> from shardmath.sharding import array
    >>> mesh = jax.sharding.AbstractMesh((4, 128), ("X", "Y"))
    >>> (x,) = abstract(mesh, array("bf16[I_X, J_Y]", mesh.shape, I=1024, J=8192))
    >>> x.shape, x.dtype.name, x.sharding.spec
    ((1024, 8192), 'bfloat16', P('X', 'Y'))
    """
    return [
        jax.ShapeDtypeStruct(
            one.shape,
            _dtype(one, dtype),
            sharding=jax.NamedSharding(mesh, spec(one, mesh.shape)),
        )
        for one in arrays
    ]


def _dtype(one: ShardedArray, dtype: str | None) -> str:
    """JAX's name of the dtype: `dtype`, or that of the array."""
    if not isinstance(one, ShardedArray):
        raise ValueError(f"{short_repr(one)}: must be an array of `sharding`")
    if dtype is None and one.precision not in DTYPES:
        known = ", ".join(DTYPES)
        raise ValueError(f"format {short_repr(one.precision)}: must be one of {known}")
    return dtype or DTYPES[one.precision]


def by_hand(
    body: Callable,
    mesh: jax.sharding.Mesh,
    operands: Iterable[Placement],
    out: Placement,
    check: bool = True,
) -> Callable:
    """`body` as a function that each device runs on its parts, by `jax.shard_map`.

    Args:
        body: a function of the parts that one device holds.
        mesh: the devices.
        operands: the placement of each argument.
        out: the placement of the result.
        check: whether JAX checks that replicated results really are replicated.

    >>> mesh = jax.make_mesh((8,), ("X",))
    >>> x = place(np.arange(16.0), mesh, "x[I_X]")
    >>> total = by_hand(lambda x: jax.lax.psum(x.sum(), "X"), mesh, ["x[I_X]"], ())
    >>> float(jax.jit(total)(x))
    120.0
    """
    return jax.shard_map(
        body,
        mesh=mesh,
        in_specs=tuple(spec(operand, mesh.shape) for operand in operands),
        out_specs=spec(out, mesh.shape),
        check_vma=check,
    )


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled JAX function: its text, collectives, FLOPs, memory and result.

    Args:
        executable: the program compiled by JAX.
        operands: the arrays, or shapes with shardings, that it was compiled for.
        mesh: size by axis name, in device order.
        trips, stated: see `hlo.read`.
    """

    executable: jax.stages.Compiled
    operands: tuple
    mesh: Mapping[str, int]
    trips: Mapping[str, int] = field(default_factory=dict)
    stated: Mapping[str, Collective] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """The optimised HLO."""
        return self.executable.as_text()

    @cached_property
    def launches(self) -> list[CompiledCollective]:
        """Its collectives with the compiler's details; see `hlo.read`."""
        return hlo.read(self.text, self.mesh, self.trips, self.stated)

    @property
    def collectives(self) -> list[Collective]:
        """Its collectives. Those in a loop count in every iteration."""
        return [one.collective for one in self.launches]

    @property
    def sent(self) -> float:
        """Bytes that one device sends in one run."""
        return sum(one.total_sent for one in self.collectives)

    def against(self, predicted: Iterable[Collective]) -> ledger.Ledger:
        """The ledger that compares predicted collectives with the compiled ones."""
        return ledger.compare(predicted, self.launches)

    @cached_property
    def flops(self) -> float:
        """FLOPs that one device executes in one run, with loops; see `hlo.flops`."""
        return hlo.flops(self.text, self.trips)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that one device holds: "arguments", "results" and "temporaries".

        This is what the compiler plans to allocate. Arguments that it may overwrite
        count both as arguments and as results.
        """
        found = self.executable.memory_analysis()
        return {
            "arguments": found.argument_size_in_bytes,
            "results": found.output_size_in_bytes,
            "temporaries": found.temp_size_in_bytes,
        }

    def __call__(self, *operands: object):
        """Run it on other operands of the same shapes and placements."""
        return self.executable(*operands)

    @cached_property
    def result(self):
        """Its result for the operands that it was compiled for.

        Raises:
            ValueError: it was compiled for shapes without values.
        """
        for one in jax.tree.leaves(self.operands):
            if isinstance(one, jax.ShapeDtypeStruct):
                raise ValueError(
                    "compiled for shapes without values: call the program on arrays"
                )
        return self(*self.operands)

    def __str__(self) -> str:
        devices = " × ".join(f"{axis} {size}" for axis, size in self.mesh.items())
        return f"a program for {devices or '1 device'}: each sends " + show(
            self.sent, "bytes"
        )

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_pretty_(self, printer, cycle):
        printer.text("\n".join([f"{self}", *(f"  {one}" for one in self.launches)]))


def compiled(
    fn: Callable,
    *operands: object,
    mesh: jax.sharding.Mesh | None = None,
    out: Placement | None = None,
    trips: Mapping[str, int] | None = None,
    stated: Mapping[str, Collective] | None = None,
    options: Mapping[str, str] | None = None,
) -> Program:
    """Compile `fn` for `operands` with their shardings, to be read or run.

    Args:
        fn: a JAX function, jitted or not.
        operands: arrays, or `jax.ShapeDtypeStruct` with a sharding, for which nothing
            is allocated.
        mesh: names the axes, and is set while `fn` is traced. By default the mesh of
            the operands.
        out: the placement of the result. By default the compiler chooses it.
        trips, stated: see `hlo.read`.
        options: flags of XLA by name, only for this program.

    Returns:
        A Program. Its collectives, FLOPs and memory are those of one device.

    Raises:
        ValueError: the operands are on several meshes. Errors of `fn` are raised
            unchanged.

    >>> mesh = jax.make_mesh((8,), ("X",))
    >>> x = place(np.ones(4096, "float32"), mesh, "x[I_X]")
    >>> print(*compiled(lambda x: jax.reshard(x, jax.P()), x).collectives)
    AllGather over X (8 devices), 16.4 kB: each sends 14.3 kB
    """
    mesh = _mesh_of(operands) if mesh is None else mesh
    target = (
        {}
        if out is None
        else {"out_shardings": jax.NamedSharding(mesh, spec(out, mesh.shape))}
    )
    with jax.set_mesh(mesh) if mesh is not None else contextlib.nullcontext():
        if target or not hasattr(fn, "lower"):  # a jitted fn keeps its options
            fn = jax.jit(fn, **target)
        executable = fn.lower(*operands).compile(options and dict(options))
    sizes = {"device": 1} if mesh is None else dict(mesh.shape)
    return Program(executable, operands, sizes, trips or {}, stated or {})


def _mesh_of(operands: tuple) -> jax.sharding.Mesh | None:
    """The mesh of the operands, or None if none of them has one."""
    found: list[jax.sharding.Mesh] = []
    for one in jax.tree.leaves(operands):
        mesh = getattr(getattr(one, "sharding", None), "mesh", None)
        if mesh is not None and mesh not in found:
            found.append(mesh)
    if len(found) > 1:
        raise ValueError(f"operands are on two meshes, {found[0]} and {found[1]}")
    return found[0] if found else None
