"""A checkpoint of another run is refused, and each array that differs is named."""

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from shardmath.referee.checkpoints import same_arrays

HERE = {"W": {"in": np.zeros((16, 64), "float32")}, "step": np.int32(0)}


def changed(**arrays):
    return {"W": HERE["W"], "step": HERE["step"]} | arrays


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (
            changed(W={"in": np.zeros((16, 32), "float32")}),
            "W.in is float32[16,32] there and float32[16,64] here",
        ),
        (
            changed(W={"in": np.zeros((16, 64), "float16")}),
            "W.in is float16[16,64] there and float32[16,64] here",
        ),
        (changed(W={}), "W.in is missing there and float32[16,64] here"),
        (changed(key=np.zeros(2)), "key is float64[2] there and missing here"),
    ],
)
def test_the_array_that_differs_is_named(stored, said):
    with pytest.raises(ValueError, match="of another run") as caught:
        same_arrays(stored, HERE)
    assert said in str(caught.value)


def test_all_that_differ_are_named():
    stored = {"W": {"in": np.zeros((1,), "float32")}, "step": np.float32(0)}
    with pytest.raises(ValueError, match=r"W.in is .*; step is "):
        same_arrays(stored, HERE)


def test_the_sharding_does_not_matter():
    mesh = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])
    at = jax.NamedSharding(mesh, jax.P("data"))
    same_arrays(HERE, {**HERE, "W": {"in": jax.device_put(HERE["W"]["in"], at)}})


def test_what_is_no_array_is_refused():
    with pytest.raises(ValueError, match="step has no shape"):
        same_arrays({"step": "five"}, HERE)


def test_the_metadata_of_orbax_is_understood(tmp_path):
    """And Orbax alone would convert another format without a word."""
    kinds = {"state": ocp.StandardCheckpointHandler()}
    with ocp.CheckpointManager(tmp_path / "run", item_handlers=kinds) as manager:
        args = ocp.args.Composite(state=ocp.args.StandardSave(HERE))
        manager.save(1, args=args)
        manager.wait_until_finished()
        stored = manager.item_metadata(1).state
        same_arrays(stored, HERE)
        with pytest.raises(ValueError, match=r"W\.in is float32"):
            same_arrays(stored, changed(W={"in": np.zeros((16, 64), "float16")}))
