"""From a JAX function to the StableHLO text that names a compiled result.

The text is made on an abstract mesh, so it is the same on any machine, whatever devices
and compilers it has.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from ...base.units import positive_int, short_repr
from ...sharding import ShardedArray
from .. import programs
from ..programs import Placement
from .targets import HERE, Target

MeshLike = Mapping[str, int] | jax.sharding.Mesh | AbstractMesh


@dataclass(frozen=True, eq=False)
class Lowered:
    """A traced function on an abstract mesh, for one target.

    Args:
        name: what it is called in messages and among the kept results.
        target: what it is compiled for.
        mesh: axes without devices.
        traced: what JAX traced.
        options: all that the compiler is told.
        schedule: whether overlaps in the schedule are asked for.
        reading: what the reader of the HLO is told, `trips` and `stated`, as text.
    """

    name: str
    target: Target
    mesh: AbstractMesh
    traced: jax.stages.Traced
    options: Mapping[str, object]
    schedule: bool
    reading: tuple[str, ...] = ()

    def stablehlo(self) -> jax.stages.Lowered:
        """Lowered for the platform of the target."""
        platform = self.target.platform
        platform = jax.default_backend() if platform == HERE else platform
        with _without_places(), jax.sharding.use_abstract_mesh(self.mesh):
            return self.traced.lower(lowering_platforms=(platform,))

    @cached_property
    def key(self) -> str:
        """The hash of all that the result depends on."""
        parts = {
            "compiler": dict(self.target.compiler),
            "mesh": list(self.mesh.shape.items()),
            "options": dict(self.options),
            "reading": self.reading,
            "schedule": self.schedule,
            "stablehlo": self.stablehlo().as_text(),
            "target": self.target.name,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def lowered(
    target: Target,
    fn: Callable,
    args: tuple,
    mesh: MeshLike | None,
    out: Placement | None,
    options: Mapping[str, object],
    schedule: bool,
    name: str,
    reading: tuple[str, ...],
) -> Lowered:
    """`fn` traced for `args` on the axes of `mesh`; see `compile_for`."""
    if mesh is None:
        mesh = {"device": 1} if target.devices == 1 else _mesh_of(args)
    axes = _axes(target, mesh)
    if out is not None:
        ends = NamedSharding(axes, programs.spec(out, axes.shape))
        fn = jax.jit(fn, out_shardings=ends)
    elif not hasattr(fn, "trace"):  # what is jitted keeps what it says, donation too
        fn = jax.jit(fn)
    leaf = {"is_leaf": lambda one: isinstance(one, ShardedArray)}
    shapes = jax.tree.map(lambda one: _shape(one, axes), args, **leaf)
    with jax.sharding.use_abstract_mesh(axes):
        traced = fn.trace(*shapes)
    return Lowered(name, target, axes, traced, options, schedule, reading)


@contextlib.contextmanager
def _without_places() -> Iterator[None]:
    """Lower without the files and lines that a program was written in.

    A Pallas kernel is part of the text as bytes, and these hold its places too. With
    them, the same kernel in another file would be another program.
    """
    limit = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, limit)
    jax.config.update(limit, 0)
    try:
        yield
    finally:
        jax.config.update(limit, before)


def _mesh_of(args: tuple) -> MeshLike:
    """The one mesh that the arguments lie on."""
    found = []
    for one in jax.tree.leaves(args):
        on = getattr(getattr(one, "sharding", None), "mesh", None)
        mesh = dict(one.mesh) if isinstance(one, ShardedArray) else on and _bare(on)
        if mesh and mesh not in found:
            found.append(mesh)
    if len(found) != 1:
        said = (
            "no argument lies on one" if not found else "the arguments lie on several"
        )
        raise ValueError(f"mesh is not given, and {said}: give mesh={{'X': 8}}")
    return found[0]


def _axes(target: Target, mesh: MeshLike) -> AbstractMesh:
    """`mesh` without devices; plain sizes are for the compiler to shard over."""
    if isinstance(mesh, jax.sharding.Mesh | AbstractMesh):
        axes = _bare(mesh)
    elif isinstance(mesh, Mapping) and mesh:
        sizes = positive_int(**{str(axis): size for axis, size in mesh.items()})
        axes = AbstractMesh(tuple(sizes), tuple(mesh), (AxisType.Auto,) * len(sizes))
    else:
        raise ValueError(
            f"mesh = {short_repr(mesh)}: must be sizes by axis, {{'X': 8}}"
        )
    if axes.size != target.devices:
        sizes = " × ".join(f"{axis} {size}" for axis, size in axes.shape.items())
        raise ValueError(
            f"mesh {sizes} has {axes.size:,} devices, not those of {target}"
        )
    return axes


def _bare(mesh: jax.sharding.Mesh | AbstractMesh) -> AbstractMesh:
    """`mesh` without its devices, and without a word on their kind."""
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


def _shape(one: object, axes: AbstractMesh) -> object:
    """An argument without data, placed on `axes`."""
    if isinstance(one, ShardedArray):
        (one,) = programs.abstract(axes, one)
        return one
    if not isinstance(one, jax.ShapeDtypeStruct | jax.Array):
        return one
    placed = one.sharding
    if isinstance(placed, NamedSharding):
        placed = NamedSharding(axes, placed.spec)
    elif isinstance(one, jax.Array):
        placed = None  # on a single device
    return jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=placed)
