"""What a strategy moves, as derived, against what real compilers make of a Transformer.

The program is `programs.gradients`: annotations at the arrays, nothing by hand. XLA for
GPUs moves what the lines of the model say, and so does XLA for TPUs without windowed
einsum. The scales of norms and their gradients, some kB a layer, come on top.
"""

import jax
import pytest

from shardmath.referee.compilers import compile_for
from shardmath.referee.programs import gradients
from shardmath.training import combine, data, fsdp, hybrid, step, tensor
from shardmath.transformer import Model

MODEL = Model("block", 4, 2048, 8192, 16, 16, 128, 32_000)
SEQ = 2048
PLAIN = {  # a matmul is not split up to overlap its own gather
    "xla_tpu_enable_windowed_einsum_for_all_gather": False,
    "xla_tpu_enable_windowed_einsum_for_reduce_scatter": False,
}
STRATEGIES = {  # how many chips each axis has, of n
    "data": (data("X"), lambda n: {"X": n}),
    "fsdp": (fsdp("X"), lambda n: {"X": n}),
    "hybrid": (hybrid("Z", "X"), lambda n: {"Z": n // 4, "X": 4}),
    "tensor": (tensor("Y", sequence=False), lambda n: {"Y": n}),
    "sequence": (tensor("Y"), lambda n: {"Y": n}),
    "data × tensor": (combine(data("X"), tensor("Y")), lambda n: {"X": n // 4, "Y": 4}),
    "fsdp × tensor": (combine(fsdp("X"), tensor("Y")), lambda n: {"X": n // 4, "Y": 4}),
}
CHIPS = {"h100:8": 8, "h100:2x8": 16, "h100:8x8": 64, "v5e:2x4": 8, "tpu7x:2x2x2": 16}
# A v5e keeps no ReduceScatter over part of a plane, and a TPU7x makes an AllReduce of a
# ReduceScatter and another: each is asked for what it compiles as it is written.
KEPT = {
    "v5e:2x4": ("data", "fsdp", "tensor", "sequence"),
    "tpu7x:2x2x2": ("data × tensor", "fsdp × tensor"),
}
EVERY = [
    (target, name, "full")
    for target, chips in CHIPS.items()
    for name in KEPT.get(target, STRATEGIES)
    if MODEL.heads % STRATEGIES[name][1](chips).get("Y", 1) == 0
]
EVERY += [("h100:8", name, one) for name in STRATEGIES for one in ("none", "dots")]


@pytest.mark.parametrize(("target", "name", "remat"), EVERY)
def test_compilers_move_what_is_derived(target, name, remat):
    strategy, sizes = STRATEGIES[name]
    mesh = sizes(CHIPS[target])
    seqs = mesh.get("X", 1) * mesh.get("Z", 1)
    abstract = jax.sharding.AbstractMesh(tuple(mesh.values()), tuple(mesh))
    program = gradients(strategy, MODEL, abstract, seqs, SEQ, remat)
    options = None if target.startswith("h100") else PLAIN
    compiled = compile_for(
        target, program[0], *program[1], mesh=abstract, options=options, name=name
    )
    derived = step(
        strategy,
        MODEL,
        mesh,
        seqs,
        SEQ,
        attention="full",
        remat=remat,
        vocabulary=False,
    )
    for row in compiled.against(derived.collectives).by_axes().rows:
        if row.predicted_sent:  # all axes at once: the gradients of norms alone
            assert row.ratio == pytest.approx(1, abs=1e-3), f"{row.axes}"
    assert compiled.against(derived.collectives).ratio == pytest.approx(1, abs=1e-3)
