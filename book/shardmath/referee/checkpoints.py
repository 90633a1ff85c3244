"""Checks that a checkpoint holds the arrays that a run is about to restore.

Orbax refuses a checkpoint if an array has another shape, but does not name the array.
It converts an array of another format silently, so the restored bits differ from the
stored ones.
"""

from ..base.extras import missing

try:
    import jax
except ImportError as error:
    raise missing("shardmath.referee.checkpoints", error) from error


def same_arrays(stored: object, wanted: object) -> None:
    """Refuse a checkpoint whose arrays differ from those of the run.

    Args:
        stored: a tree whose leaves have a shape and a dtype, such as the metadata of a
            checkpoint.
        wanted: the same tree for the run, with arrays or `jax.ShapeDtypeStruct` as
            leaves.

    Raises:
        ValueError: a leaf has no shape, or arrays are missing, superfluous, or of
            another shape or format. The message gives each such array's type on both
            sides.

    >>> here = {"W": {"in": jax.ShapeDtypeStruct((16, 64), "float32")}}
    >>> same_arrays(here, here)
    >>> same_arrays({"W": {"in": jax.ShapeDtypeStruct((16, 32), "float32")}}, here)
    Traceback (most recent call last):
    ...
    ValueError: the checkpoint is of another run: W.in is float32[16,32] there and \
float32[16,64] here
    """
    there, here = _types(stored), _types(wanted)
    nothing = "missing"
    differ = [
        f"{name} is {there.get(name, nothing)} there and {here.get(name, nothing)} here"
        for name in dict.fromkeys([*here, *there])
        if there.get(name) != here.get(name)
    ]
    if differ:
        raise ValueError(f"the checkpoint is of another run: {'; '.join(differ)}")


def _types(tree: object) -> dict[str, str]:
    """The type of each array, by its dotted name."""
    leaves = jax.tree.leaves_with_path(tree, is_leaf=_has_a_shape)
    found = {}
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if not _has_a_shape(leaf):
            raise ValueError(f"{name or 'the tree'} has no shape; it must be an array")
        sizes = ",".join(map(str, leaf.shape))
        found[name] = f"{jax.numpy.dtype(leaf.dtype).name}[{sizes}]"
    return found


def _has_a_shape(leaf: object) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")
