"""One array in the notation."""

from .bind_axes import bound
from .layout import ShardedArray
from .machine import Machine
from .notation import parse


def array(
    text: str, mesh: Machine = None, dtype: str = "bf16", **sizes: int
) -> ShardedArray:
    """One array in the notation, such as ``"bf16[B_X, D]"`` or ``"A[I, J_XY]{U_Z}"``.

    Args:
        text: the array, with its name or its format before the bracket. Names of mesh
            axes may have several letters, ``"A[I_data, J_{model,X}]"``. The first axis
            of a dimension is the major one, so XY is not YX.
        mesh: a `Mesh`, or sizes by axis name in device order (row-major).
        dtype: the format if the text names none.
        sizes: the size of every dimension.

    Returns:
        A ShardedArray, with its blocks, bytes and copies.

    Raises:
        ValueError: `text` is not in the notation; an axis is used twice or is not in
            the mesh; a size is missing or cannot be divided by its axes. The message
            points at the wrong character.

    >>> array("A[I_XY, J]", mesh={"X": 2, "Y": 4}, I=64, J=3).local_shape
    (8, 3)
    >>> for line in ("A[I_XY]", "A[I_YX]"):  # the same blocks on other devices
    ...     array(line, mesh={"X": 2, "Y": 2}, I=4).devices_by_block
    {(0,): (0,), (1,): (1,), (2,): (2,), (3,): (3,)}
    {(0,): (0,), (1,): (2,), (2,): (1,), (3,): (3,)}
    """
    line = parse(text)
    if len(line.left) > 1:
        raise line.left[1].head.error("one array is expected; `contract` takes two")
    if line.right:
        raise line.right.head.error("one array is expected; `reshard` changes one")
    return bound(line, mesh, dtype, sizes)[0]
