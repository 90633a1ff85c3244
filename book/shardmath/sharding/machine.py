"""The machine of a line: a mesh, one chip, or only the sizes of axes."""

from collections.abc import Mapping

from ..base.units import positive_int, short_repr
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh

Machine = Mesh | Chip | Mapping[str, int] | None


def axes_of(mesh: Machine) -> dict[str, int]:
    """Sizes of the mesh axes by name, in device order; a single chip has none.

    Raises:
        ValueError: `mesh` is no `Machine`, or a size is not a whole number from 1.

    >>> axes_of({"X": 4, "Y": 2})
    {'X': 4, 'Y': 2}
    """
    if mesh is None or isinstance(mesh, Chip):
        return {}
    found = getattr(mesh, "axes", mesh)
    if not isinstance(found, Mapping):
        raise ValueError(
            f"mesh = {short_repr(mesh)}: must be a `Mesh`, a `Chip`, or sizes such as "
            "{'X': 4}"
        )
    return {str(name): positive_int(**{str(name): n})[0] for name, n in found.items()}


def priced(mesh: Machine) -> Mesh | Chip | None:
    """`mesh` if it gives times; None if it gives only sizes."""
    return None if isinstance(mesh, Mapping) else mesh


def chip_of(machine: Mesh | Chip) -> Chip:
    """The kind of chip that `machine` is made of.

    Raises:
        ValueError: only sizes are given, or the chips of the network are not known.
    """
    if isinstance(machine, Chip):
        return machine
    network = getattr(machine, "network", None)
    if network is None:
        raise ValueError(
            f"mesh = {short_repr(machine)}: must be a `Mesh` or a `Chip` for a time"
        )
    if network.chip is None:
        raise ValueError(f"{network.name}: must be made of one kind of chip")
    return network.chip
