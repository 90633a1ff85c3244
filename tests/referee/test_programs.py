"""Programs: what is placed lies where the notation says, what is read is what runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType

from shardmath.collectives import Collective
from shardmath.referee import programs
from shardmath.sharding import array, contract

SIZES = {"X": 4, "Y": 2}
LINE = "A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K]"


def mesh(**types):
    return jax.make_mesh((4, 2), ("X", "Y"), **types)


def automatic():
    return mesh(axis_types=(AxisType.Auto,) * 2)


def matmul(devices):
    op = contract(LINE, SIZES, "f32", I=64, J=32, K=16)
    return op, *programs.drawn(devices, op.a, op.b)


def product(a, b):
    return lax.psum(a @ b, "Y")


@pytest.mark.parametrize(
    ("placement", "want"),
    [
        ("A[I_X, J]", jax.P("X", None)),
        ("A[I_XY, J]", jax.P(("X", "Y"), None)),
        ("A[I, J]", jax.P(None, None)),
        ("A[I, J]{U_X}", jax.P(None, None, unreduced={"X"})),
        (array("A[I, J_Y]", SIZES, I=8, J=8), jax.P(None, "Y")),
        (jax.P("Y"), jax.P("Y")),
        (("X", None), jax.P("X", None)),
        ((), jax.P()),
    ],
)
def test_placements_in_every_form(placement, want):
    assert programs.spec(placement) == want


@pytest.mark.parametrize(
    "placement", [3, None, "A[I_X", "A[I] · B[J]", "A[I] -> A[I_X]"]
)
def test_what_is_no_placement_is_refused(placement):
    with pytest.raises(ValueError, match=r"placement|expected"):
        programs.spec(placement)


def test_the_mesh_says_what_a_subscript_means():
    """`XY` is two axes, unless the mesh has one of that name."""
    devices = jax.make_mesh((4, 2), ("XY", "data"))
    values = np.ones((8, 8), "float32")
    for line, sizes, want in [
        ("A[I_XY, J_data]", devices, jax.P("XY", "data")),
        ("A[I_YX, J]", mesh(), jax.P(("Y", "X"), None)),
        ("A[I, J_XY]", mesh(), jax.P(None, ("X", "Y"))),
    ]:
        assert programs.spec(line, sizes.shape) == want
        assert programs.place(values, sizes, line).sharding.spec == want
    with pytest.raises(ValueError, match="mesh axis Z is not in the mesh"):
        programs.place(values, mesh(), "A[I_Z, J]")


def test_every_device_holds_the_block_that_the_notation_says():
    where = array("A[I_Y, J_X]", SIZES, I=8, J=12)
    values = np.arange(96.0, dtype="float32").reshape(8, 12)
    x = programs.place(values, mesh(), where)
    for shard, at in zip(x.addressable_shards, where.places(), strict=True):
        assert np.array_equal(shard.data, values[where.block(at)])


def test_drawn_values_follow_seed_and_format():
    op = contract(LINE, SIZES, "bf16", I=8, J=8, K=8)
    a, b = programs.drawn(mesh(), op.a, op.b)
    (again,) = programs.drawn(mesh(), op.a)
    (other,) = programs.drawn(mesh(), op.a, seed=1)
    (wide,) = programs.drawn(mesh(), op.a, dtype="float32")
    assert (a.dtype, wide.dtype, b.shape) == ("bfloat16", "float32", (8, 8))
    assert (a == again).all()
    assert not (a == other).all()


def test_by_hand_result_collectives_ledger_and_flops():
    devices = mesh()
    op, a, b = matmul(devices)
    fn = programs.by_hand(product, devices, (op.a, op.b), op.c)
    program = programs.compiled(fn, a, b)
    assert np.allclose(program.result, np.asarray(a) @ np.asarray(b), atol=1e-4)
    assert program.against(op.collectives).exact
    assert program.sent == sum(one.total_sent for one in op.collectives)
    assert program.collectives == [one.collective for one in program.launches]
    assert program.flops == 2 * 64 * 32 * 16 / 8
    assert program.mesh == SIZES
    held = 4 * (64 * 32 / 8 + 32 * 16 / 2)
    assert program.memory["arguments"] == held
    assert program.memory["results"] == 4 * 64 * 16 / 4
    assert "X 4 × Y 2" in str(program)


def test_loops_count_in_collectives_and_flops():
    devices = mesh()
    op, a, b = matmul(devices)

    def six_sums(a, b):
        return lax.fori_loop(
            0, 5, lambda _, c: lax.psum(jnp.sin(c), "Y"), product(a, b)
        )

    placed = (devices, (op.a, op.b), op.c)
    once = programs.compiled(programs.by_hand(product, *placed), a, b)
    six = programs.compiled(programs.by_hand(six_sums, *placed, check=False), a, b)
    assert six.sent == 6 * once.sent
    assert six.flops == once.flops + 5 * 16 * 16


def test_shapes_compile_without_data_and_run_on_given_arrays():
    _, *arrays = matmul(automatic())
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for x in arrays
    ]
    program = programs.compiled(jnp.matmul, *shapes, out="C[I, K]")
    a, b = map(np.asarray, arrays)
    assert np.allclose(program(*arrays), a @ b, atol=1e-4)
    with pytest.raises(ValueError, match="call the program on arrays"):
        assert program.result is None


def test_the_compiler_shards_to_where_the_result_is_wanted():
    devices = automatic()
    _, a, b = matmul(devices)
    open_end = programs.compiled(jnp.matmul, a, b)
    whole = programs.compiled(jnp.matmul, a, b, out="C[I, K]")
    assert whole.result.sharding.spec == jax.P(None, None)
    assert whole.sent > open_end.sent


def test_one_device_and_no_mesh():
    program = programs.compiled(lambda x: x @ x, np.ones((8, 8), "float32"))
    assert program.collectives == []
    assert program.flops == 2 * 8**3
    assert (program.result == 8).all()


def test_operands_on_two_meshes_are_refused():
    _, a, _ = matmul(mesh())
    other = jax.device_put(
        a, jax.NamedSharding(jax.make_mesh((8,), ("Z",)), jax.P("Z"))
    )
    with pytest.raises(ValueError, match="two meshes"):
        programs.compiled(lambda a, b: a, a, other)


def test_loops_that_data_ends_take_the_readers_number():
    devices = mesh()
    x = programs.place(np.ones((8, 8), "float32"), devices, "x[I_X, J]")

    def halve(x):
        return lax.while_loop(
            lambda s: lax.pmax(s.max(), "X") > 1e-3,
            lambda s: lax.ppermute(s / 2, "X", [(i, (i + 1) % 4) for i in range(4)]),
            x,
        )

    fn = programs.by_hand(halve, devices, ["x[I_X, J]"], "x[I_X, J]", check=False)
    program = programs.compiled(fn, x)
    with pytest.raises(ValueError, match="trips=") as error:
        assert program.collectives
    name = str(error.value).split('trips={"')[1].split('"')[0]
    counted = programs.compiled(fn, x, trips={name: 10})
    permutes = [c for c in counted.collectives if c.op == "permute"]
    assert permutes == [Collective("permute", "X", 64.0, 4, times=10)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: programs.place(np.ones(8), SIZES, "A[I_X]"), "jax.make_mesh returns"),
        (lambda: programs.drawn(mesh(), 5), "5: must be an array of `sharding`"),
        (
            lambda: programs.drawn(mesh(), array("int8[I_X]", SIZES, I=8)),
            "format 'int8': must be one of",
        ),
    ],
)
def test_what_cannot_be_placed_or_drawn_is_quoted(call, said):
    with pytest.raises(ValueError, match=said):
        call()
