"""Where the arrays of a Transformer are pinned, so that what moves is what we say."""

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
    """Puts every array where a strategy says, by `jax.lax.with_sharding_constraint`.

    A constraint says where an array lies, not how it comes there. So what is gathered
    is pinned at **both ends**: before, in the format that it shall travel in, and
    after. Partial sums are pinned where they arrive alone: whole first, they would be
    added up on every device. The gradient of a gather is a sum, and that of a sum a
    gather, so each is pinned in its own way.

    Args:
        strategy: layouts by dimension.
        mesh: of automatic axes. None: one device, and nothing is pinned.
        both_ends: False pins every array where it arrives, alone, as one would write it
            first; JAX pins its gradient there too.
        forget: keep the shards of a weight for the backward pass, not the gathered one;
            what is rematerialised forgets it anyway.
    """

    strategy: Strategy
    mesh: AnyMesh | None
    both_ends: bool = True
    forget: bool = False

    def sharding(self, dims: Dims, layout: Layout) -> jax.NamedSharding:
        """Where an array of these dimensions lies."""
        return jax.NamedSharding(self.mesh, jax.P(*map(layout.get, dims)))

    def at(self, array: jax.Array, dims: Dims, layout: Layout) -> jax.Array:
        """The array, where `layout` says."""
        if self.mesh is None:
            return array
        return jax.lax.with_sharding_constraint(array, self.sharding(dims, layout))

    def inside(self, array: jax.Array, dims: Dims) -> jax.Array:
        """An activation inside a block."""
        return self.at(array, dims, self.strategy.inner)

    def between(self, array: jax.Array, dims: Dims) -> jax.Array:
        """An activation between the blocks, in the residual stream."""
        return self.at(array, dims, self.strategy.stream)

    def entering(self, array: jax.Array, dims: Dims) -> jax.Array:
        """From the stream into a block: gathered; its gradient is added up."""
        at = self.strategy
        return self._moved(array, dims, [at.stream, at.inner], [at.stream])

    def leaving(self, array: jax.Array, dims: Dims) -> jax.Array:
        """From a block into the stream: added up; its gradient is gathered."""
        at = self.strategy
        return self._moved(array, dims, [at.stream], [at.stream, at.inner])

    def used(self, weight: jax.Array, dims: Dims) -> jax.Array:
        """A weight from where it rests to where it is used; its gradient is added up.

        What tensor parallelism splits stays so, what FSDP splits is gathered.
        """
        at = self.strategy
        return self._moved(weight, dims, [at.weights, at.inner], [at.gradients])

    def _moved(
        self, array: jax.Array, dims: Dims, there: list[Layout], back: list[Layout]
    ) -> jax.Array:
        """The array, pinned `there`, one after another; its gradient, pinned `back`."""
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
        """fn(x, weight), the weight gathered, used and, if `forget`, forgotten."""

        def product(x: jax.Array, weight: jax.Array) -> jax.Array:
            return fn(x, self.used(weight, dims))

        keep = jax.checkpoint(product, prevent_cse=False) if self.forget else product
        return keep(x, weight)

    def times(self, line: str, x: jax.Array, weight: jax.Array) -> jax.Array:
        """x · weight, by a line of `einsum` such as ``"BSD,DF->BSF"``."""
        operands, dims = line.split("->")
        y = self.apply(partial(jnp.einsum, line), x, weight, operands.split(",")[1])
        return self.leaving(y, dims) if dims.endswith("D") else self.inside(y, dims)

    @property
    def copies(self) -> int:
        """How many devices hold the same KV head, for other query heads each: along the
        mesh axes that `inner` splits N over and K not."""
        at = self.strategy.inner
        axes = [axis for axis in at.get("N", ()) if axis not in at.get("K", ())]
        return prod(self.mesh.shape[axis] for axis in axes) if self.mesh else 1

    def heads(self, x: jax.Array, weight: jax.Array) -> jax.Array:
        """Keys or values [B, S, K, H], from weights [D, K, H], with all copies.

        The weights are copied, and each copy lies with the query heads that it serves.
        So what the copies owe each other is added up once, in the weights' gradient.
        """
        if self.copies == 1:
            return self.times("BSD,DKH->BSKH", x, weight)

        def product(x: jax.Array, weight: jax.Array) -> jax.Array:
            weight = self.inside(jnp.repeat(weight, self.copies, axis=1), "DNH")
            return jnp.einsum("BSD,DNH->BSNH", x, weight)

        return self.inside(self.apply(product, x, weight, "DKH"), "BSNH")


NOWHERE = Pins(Strategy("one device"), None)
