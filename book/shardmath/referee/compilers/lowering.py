"""Lowers a JAX function to StableHLO text, whose hash identifies a compiled result.

The function is lowered on an abstract mesh, so the text does not depend on the devices
and compilers of this machine.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from ...base.units import positive_int, short_repr, shortened
from ...sharding import ShardedArray
from .. import programs
from ..programs import Placement
from .targets import HERE, Target

MeshLike = Mapping[str, int] | jax.sharding.Mesh | AbstractMesh


@dataclass(frozen=True, eq=False)
class Lowered:
    """A traced function on an abstract mesh, for one target.

    Args:
        name: its name in messages and in the files of kept results.
        target: the machine that it is compiled for.
        mesh: axes without devices.
        traced: the function as JAX traced it.
        options: all options of the compiler.
        schedule: whether overlaps in the schedule are wanted.
        reading: how the HLO is read: `trips` and `stated` as text, and "ops".
    """

    name: str
    target: Target
    mesh: AbstractMesh
    traced: jax.stages.Traced
    options: Mapping[str, object]
    schedule: bool
    reading: tuple[str, ...] = ()

    def stablehlo(self) -> jax.stages.Lowered:
        """The function lowered for the platform of the target."""
        platform = self.target.platform
        platform = jax.default_backend() if platform == HERE else platform
        with _without_places(), jax.sharding.use_abstract_mesh(self.mesh):
            return self.traced.lower(lowering_platforms=(platform,))

    @cached_property
    def key(self) -> str:
        """The hash of everything that the result depends on."""
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
    elif not hasattr(fn, "trace"):  # a jitted fn keeps its options, such as donation
        fn = jax.jit(fn)
    leaf = {"is_leaf": lambda one: isinstance(one, ShardedArray)}
    shapes = jax.tree.map(lambda one: _shape(one, axes), args, **leaf)
    with jax.sharding.use_abstract_mesh(axes):
        traced = fn.trace(*shapes)
    return Lowered(name, target, axes, traced, options, schedule, reading)


@contextlib.contextmanager
def _without_places() -> Iterator[None]:
    """Lower without the file names and line numbers of the source code.

    A Pallas kernel is part of the text as bytes, which include them. With them, moving
    a kernel to another line or file would change the key.
    """
    limit = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, limit)
    jax.config.update(limit, 0)
    try:
        yield
    finally:
        jax.config.update(limit, before)


def _mesh_of(args: tuple) -> MeshLike:
    """The one mesh of all arguments."""
    found = []
    for one in jax.tree.leaves(args):
        on = getattr(getattr(one, "sharding", None), "mesh", None)
        mesh = dict(one.mesh) if isinstance(one, ShardedArray) else on and _bare(on)
        if mesh and mesh not in found:
            found.append(mesh)
    if len(found) != 1:
        said = "no argument has a mesh" if not found else "the arguments have several"
        raise ValueError(f"mesh is not given, and {said}: pass, say, mesh={{'X': 8}}")
    return found[0]


def _axes(target: Target, mesh: MeshLike) -> AbstractMesh:
    """`mesh` without devices. Plain sizes become axes that the compiler shards over."""
    if isinstance(mesh, jax.sharding.Mesh | AbstractMesh):
        axes = _bare(mesh)
    elif isinstance(mesh, Mapping) and mesh:
        sizes = positive_int(**{str(axis): size for axis, size in mesh.items()})
        axes = AbstractMesh(tuple(sizes), tuple(mesh), (AxisType.Auto,) * len(sizes))
    else:
        raise ValueError(
            f"mesh = {short_repr(mesh)}: must be sizes by axis, such as {{'X': 8}}"
        )
    if axes.size != target.devices:
        sizes = " × ".join(f"{axis} {size}" for axis, size in axes.shape.items())
        raise ValueError(
            f"mesh {shortened(sizes)} has {axes.size:,} devices, unlike {target}"
        )
    return axes


def _bare(mesh: jax.sharding.Mesh | AbstractMesh) -> AbstractMesh:
    """`mesh` without its devices and their kind."""
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
