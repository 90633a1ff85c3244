"""Pins the arrays of a Transformer to shardings, which determines the collectives."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

from ...base.extras import missing

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise missing("shardmath.referee.programs", error) from error

from ...training import Strategy
from ...training.strategy import Layout

Dims = str | Iterable[str]  # "BSD"
AnyMesh = jax.sharding.Mesh | jax.sharding.AbstractMesh


@dataclass(frozen=True)
class Pins:
    """Shards every array as a strategy says, with `jax.lax.with_sharding_constraint`.

    A constraint says how an array is sharded but not how it gets there. So a gathered
    array is pinned at **both ends**: before the gather, in the dtype to be sent, and
    after it. Partial sums are pinned only after they are added up, because pinning the
    whole array first would make every device compute the whole sum. The gradient of a
    gather is a sum, and the gradient of a sum is a gather, so arrays and their
    gradients are pinned differently.

    Args:
        strategy: layouts by dimension.
        mesh: a mesh with automatic axes. If it is None, there is one device and nothing
            is pinned.
        both_ends: if False, every array is pinned only to its final layout, as in a
            naive program, and JAX pins its gradient to that layout too.
        forget: whether to keep the shards of a weight for the backward pass instead of
            the gathered weight. Rematerialisation does this anyway.
    """

    strategy: Strategy
    mesh: AnyMesh | None
    both_ends: bool = True
    forget: bool = False

    def sharding(self, dims: Dims, layout: Layout) -> jax.NamedSharding:
        """The sharding of an array with these dimensions."""
        return jax.NamedSharding(self.mesh, jax.P(*map(layout.get, dims)))

    def at(self, array: jax.Array, dims: Dims, layout: Layout) -> jax.Array:
        """The array, sharded by `layout`."""
        if self.mesh is None:
            return array
        return jax.lax.with_sharding_constraint(array, self.sharding(dims, layout))

    def inside(self, array: jax.Array, dims: Dims) -> jax.Array:
        """An activation inside a block, pinned."""
        return self.at(array, dims, self.strategy.inner)

    def between(self, array: jax.Array, dims: Dims) -> jax.Array:
        """An activation between the blocks, in the residual stream, pinned."""
        return self.at(array, dims, self.strategy.stream)

    def entering(self, array: jax.Array, dims: Dims) -> jax.Array:
        """An activation entering a block: it is gathered, and its gradient summed."""
        at = self.strategy
        return self._moved(array, dims, [at.stream, at.inner], [at.stream])

    def leaving(self, array: jax.Array, dims: Dims) -> jax.Array:
        """An activation leaving a block: it is summed, and its gradient gathered."""
        at = self.strategy
        return self._moved(array, dims, [at.stream], [at.stream, at.inner])

    def used(self, weight: jax.Array, dims: Dims) -> jax.Array:
        """A weight as it is used: it is gathered, and its gradient is summed.

        Axes of FSDP are gathered, but those of tensor parallelism stay split.
        """
        at = self.strategy
        return self._moved(weight, dims, [at.weights, at.inner], [at.gradients])

    def _moved(
        self, array: jax.Array, dims: Dims, there: list[Layout], back: list[Layout]
    ) -> jax.Array:
        """The array pinned to the layouts `there` in turn, its gradient to `back`."""
        if not self.both_ends:
            return self.at(array, dims, there[-1])

        def pinned(array: jax.Array, layouts: list[Layout]) -> jax.Array:
            return reduce(lambda one, at: self.at(one, dims, at), layouts, array)

        @jax.custom_vjp
        def move(array: jax.Array) -> jax.Array:
            return pinned(array, there)

        move.defvjp(
            lambda array: (pinned(array, there), None), lambda _, d: (pinned(d, back),)
        )
        return move(array)

    def apply(
        self, fn: Callable, x: jax.Array, weight: jax.Array, dims: Dims
    ) -> jax.Array:
        """fn(x, weight) with the gathered weight, which is not kept if `forget`."""

        def product(x: jax.Array, weight: jax.Array) -> jax.Array:
            return fn(x, self.used(weight, dims))

        keep = jax.checkpoint(product, prevent_cse=False) if self.forget else product
        return keep(x, weight)

    def times(self, line: str, x: jax.Array, weight: jax.Array) -> jax.Array:
        """x · weight, by `einsum` with a `line` such as ``"BSD,DF->BSF"``."""
        operands, dims = line.split("->")
        y = self.apply(partial(jnp.einsum, line), x, weight, operands.split(",")[1])
        return self.leaving(y, dims) if dims.endswith("D") else self.inside(y, dims)

    @property
    def copies(self) -> int:
        """How many devices hold the same KV head, each for different query heads: the
        size of the mesh axes over which `inner` splits N but not K."""
        at = self.strategy.inner
        axes = [axis for axis in at.get("N", ()) if axis not in at.get("K", ())]
        return prod(self.mesh.shape[axis] for axis in axes) if self.mesh else 1

    def heads(self, x: jax.Array, weight: jax.Array) -> jax.Array:
        """Keys or values [B, S, K · copies, H], from weights [D, K, H].

        The weights are copied, and each copy is placed with the query heads that it
        serves. So the copies' gradients are summed once, in the weights' gradient.
        """
        if self.copies == 1:
            return self.times("BSD,DKH->BSKH", x, weight)

        def product(x: jax.Array, weight: jax.Array) -> jax.Array:
            weight = self.inside(jnp.repeat(weight, self.copies, axis=1), "DNH")
            return jnp.einsum("BSD,DNH->BSNH", x, weight)

        return self.inside(self.apply(product, x, weight, "DKH"), "BSNH")


NOWHERE = Pins(Strategy("one device"), None)
