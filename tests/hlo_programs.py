"""JAX programs whose compiled text the tests of `hlo` read, stored and fresh.

    PYTHONPATH=.venv/compilers .venv/bin/python tests/hlo_programs.py

compiles them for targets that are not here and stores the text in tests/data/hlo, with
the compilers that `make referee` installs. Every program is written once for a mesh
with axes X and Y of any size.
"""

import random
import re
from collections import Counter
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from shardmath.referee import compilers, programs
from shardmath.referee.compilers.devices import devices as on

STORE = Path(__file__).parent / "data" / "hlo"
shard_map = partial(jax.shard_map, check_vma=False)


def arg(mesh, spec, *shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def by_hand(mesh):
    """Each of the five collectives, three of them in a loop of 5."""
    n = mesh.shape["X"]

    def step(c, _, w):
        c = lax.psum(c @ lax.all_gather(w, "X", tiled=True), "Y") * 1e-3
        c = lax.ppermute(c, "X", [(i, (i + 1) % n) for i in range(n)])
        return jnp.tanh(c), None

    def f(x, w):
        c, _ = lax.scan(partial(step, w=w), x, None, length=5)
        r = lax.psum_scatter(c @ c.T, ("X", "Y"), tiled=True)
        return r, lax.all_to_all(jnp.sin(c), "Y", 0, 1, tiled=True)

    f = shard_map(
        f,
        mesh=mesh,
        in_specs=(P("Y"), P("X")),
        out_specs=(P(("X", "Y")), P(None, "Y")),
    )
    return f, (arg(mesh, P("Y"), 512, 512), arg(mesh, P("X"), 512, 512))


def nested(mesh):
    """A loop of 4 around a loop of 3 and one that steps 1, 3, 5 (also 3 turns)."""

    def outer(_, c):
        c, _ = lax.scan(lambda c, _: (lax.psum(jnp.sin(c), "X"), None), c, None, 3)

        def step(state):
            i, c = state
            return i + 2, lax.ppermute(jnp.cos(c), "Y", [(0, 1), (1, 0)])

        return lax.while_loop(lambda state: state[0] < 7, step, (1, c))[1]

    f = shard_map(
        lambda x: lax.fori_loop(0, 4, outer, x),
        mesh=mesh,
        in_specs=P("X", "Y"),
        out_specs=P("X", "Y"),
    )
    return f, (arg(mesh, P("X", "Y"), 512, 512),)


def branches(mesh):
    """A collective in each branch of a conditional that data decides."""

    def f(x, i):
        def sends(v):
            return lax.ppermute(v, "Y", [(0, 1)]) * 2

        return lax.cond(i[0] > 3, lambda v: lax.psum(v, "X"), sends, x)

    f = shard_map(f, mesh=mesh, in_specs=(P("X", "Y"), P()), out_specs=P("X", "Y"))
    return f, (arg(mesh, P("X", "Y"), 512, 512), arg(mesh, P(), 1, dtype="int32"))


def tree(mesh):
    """Three arrays in one psum: the compiler combines them."""
    f = shard_map(
        lambda *arrays: lax.psum(arrays, "X"),
        mesh=mesh,
        in_specs=(P("X"),) * 3,
        out_specs=(P(),) * 3,
    )
    return f, tuple(arg(mesh, P("X"), *s) for s in [(512, 512), (16, 128), (64,)])


def fsdp(mesh):
    """Gradient of 4 layers by the compiler alone: weights sharded over X and Y."""

    def loss(ws, x):
        h, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)
        return jnp.sum(h.astype(jnp.float32) ** 2)

    weights = P(None, "X", "Y")
    f = jax.jit(jax.grad(loss), out_shardings=NamedSharding(mesh, weights))
    return f, (
        arg(mesh, weights, 4, 1024, 1024, dtype="bfloat16"),
        arg(mesh, P("X"), 2048, 1024, dtype="bfloat16"),
    )


def gather_matmul(mesh):
    """A[I_X, J] · B[J, K_X] -> C[I, K_X] by the compiler: overlaps the AllGather."""
    f = jax.jit(jnp.dot, out_shardings=NamedSharding(mesh, P(None, "X")))
    return f, (
        arg(mesh, P("X"), 16384, 8192, dtype="bfloat16"),
        arg(mesh, P(None, "X"), 8192, 32768, dtype="bfloat16"),
    )


def slices(mesh):
    """X is slices: AllReduce over X, and over all; AllGather in a slice; a swap."""

    def f(x):
        return (
            lax.psum(x, "X"),
            lax.psum(x * 2, ("X", "Y")),
            lax.all_gather(x * 3, "Y"),
            lax.ppermute(x, "X", [(0, 1), (1, 0)]),
        )

    f = shard_map(
        f,
        mesh=mesh,
        in_specs=P("X", "Y"),
        out_specs=(P(None, "Y"), P(), P("X"), P("X", "Y")),
    )
    return f, (arg(mesh, P("X", "Y"), 1024, 4096),)


def drawn(seed: int, sizes: dict[str, int], rows: int = 16, columns: int = 8):
    """A random program of nested loops and collectives, and what it must run.

    `rows` and `columns` are those of one device, in fp32. Returns the program, and how
    often each (op, axes, group, bytes) must appear.
    """
    draw, expected = random.Random(seed), Counter()

    def leaf(times):
        op = draw.choice(list(STEPS))
        axes = tuple(sorted(draw.sample(list(sizes), draw.randint(1, len(sizes)))))
        n = int(np.prod([sizes[axis] for axis in axes]))
        whole = n if op in ("all_gather", "all_to_all") else 1
        expected[op, axes, n, 4 * rows * columns * whole] += times
        return lambda c: jnp.sin(STEPS[op](jnp.cos(c), axes, n))

    def part(depth, times):
        if depth == 0 or draw.random() < 0.3:
            return leaf(times)
        kind, turns = draw.choice(list(LOOPS)), draw.randint(1, 5)
        inside = block(depth - 1, times * turns)
        return lambda c: LOOPS[kind](inside, turns, c)

    def block(depth, times):
        parts = [part(depth, times) for _ in range(draw.randint(1, 3))]

        def run(c):
            for one in parts:
                c = one(c)
            return c

        return run

    whole = P(tuple(sizes))

    def program(mesh):
        f = shard_map(run, mesh=mesh, in_specs=whole, out_specs=whole)
        return f, (
            arg(mesh, whole, rows * int(np.prod(list(sizes.values()))), columns),
        )

    run = block(3, 1)
    return program, expected


def _gather(c, axes, n):
    return lax.all_gather(c, axes, tiled=True).reshape(n, *c.shape).max(0)


def _scatter(c, axes, n):
    return jnp.tile(lax.psum_scatter(c, axes, tiled=True), (n, 1))


def _exchange(c, axes, n):
    return lax.all_to_all(c, axes, 0, 1, tiled=True).reshape(c.shape)


def _ring(c, axes, n):
    return lax.ppermute(c, axes, [(i, (i + 1) % n) for i in range(n)])


def _while(inside, turns, c):
    def step(state):
        i, c = state
        return i - 2, inside(c)

    return lax.while_loop(lambda state: state[0] > 0, step, (2 * turns, c))[1]


# Each keeps the shape of what one device holds.
STEPS = {
    "all_gather": _gather,
    "reduce_scatter": _scatter,
    "all_reduce": lambda c, axes, n: lax.psum(c, axes),
    "all_to_all": _exchange,
    "permute": _ring,
}
LOOPS = {
    "scan": lambda f, n, c: lax.scan(lambda c, _: (f(c), None), c, None, n)[0],
    "fori": lambda f, n, c: lax.fori_loop(0, n, lambda _, c: f(c), c),
    "while": _while,
}


def mesh_on(target: str, shape: tuple[int, ...]) -> Mesh:
    """A mesh X, Y (, Z) on "cpu" or a target of `compilers`."""
    found = jax.devices() if target == "cpu" else on(compilers.target(target), shape)
    names = ("X", "Y", "Z")[: len(shape)]
    types = (AxisType.Auto,) * len(shape)
    return Mesh(np.array(found).reshape(shape), names, axis_types=types)


def compiled(program, mesh: Mesh) -> str:
    f, args = program(mesh)
    return programs.compiled(f, *args).text


def bare(text: str) -> str:
    """Without what names places on a disk or only helps to debug the compiler."""
    text = re.sub(r"\n\nFileNames\n.*?\n\n\n", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r', metadata=\{(?:[^{}"]|"[^"]*")*\}', "", text)
    return re.sub(r',"debug":"[^"]*"', "", text)


STORED = {
    by_hand: ("cpu", "h100:8", "v5e:2x4", "v5p:2x2x2", "tpu7x:2x2x1"),
    nested: ("cpu", "h100:8", "v5e:2x4"),
    branches: ("cpu", "h100:8"),
    tree: ("cpu", "h100:8"),
    fsdp: ("cpu", "h100:8", "v5e:2x4", "tpu7x:2x2x1"),
    gather_matmul: ("v5e:2x4",),
    slices: ("v5e:2x2*2",),
}
SHAPES = {gather_matmul: (8, 1), slices: (2, 4)}

if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    for program, targets in STORED.items():
        for target in targets:
            mesh = mesh_on(target, SHAPES.get(program, (4, 2)))
            named = target.removesuffix(":8").replace(":", "-").replace("*2", "+2x2")
            name = f"{program.__name__}.{named}.txt"
            (STORE / name).write_text(bare(compiled(program, mesh)))
            print(name)
