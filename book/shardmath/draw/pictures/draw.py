"""``draw(thing)`` returns the picture of an object of the package."""

from functools import singledispatch

from ...base.units import short_repr
from ...collectives import Hierarchy
from ...collectives.simulator import Trace
from ...hardware.networks import Cluster, NVLinkDomain, Torus
from ...hardware.waves import TileSchedule as WaveSchedule
from ...sharding import CollectiveMatmul, ShardedArray
from ...training.pipeline_schedules import PipelineSchedule
from ..objects.collective_matmul import collective_matmul
from ..objects.grid import cube, grid
from ..objects.hierarchy import hierarchy
from ..objects.layout import drawn
from ..objects.pipeline import timeline
from ..objects.trace import trace_timeline
from ..objects.tree import domains, tree
from ..objects.waves import tiles
from ..picture import Picture


@singledispatch
def draw(thing: object) -> Picture:
    """The picture of `thing`, chosen by its type.

    ============================  =====================================================
    `ShardedArray`                its blocks, and the devices that hold each of them
    `Torus`                       a slice with its open sides, or a cube with its faces
    `NVLinkDomain`, `Cluster`     the GPUs, and the rate into each level above them
    `Trace`                       when each link works, and how much of the result is
                                  there
    `Hierarchy`                   what the chips hold after each of the three stages
    `CollectiveMatmul`            a gather before a matmul, and inside it
    a schedule                    what each SM, or each pipeline stage, does over time
    a `Picture`                   itself
    ============================  =====================================================

    Raises:
        ValueError: the package has no picture of such an object.

    >>> from shardmath.hardware.chips import TPU_V5E
    >>> draw(Torus(TPU_V5E, (4, 4))).title
    'TPU v5e 4x4'
    """
    raise ValueError(
        f"draw: {short_repr(thing)}: must be an object that has a picture, such as a "
        "ShardedArray, a Torus, a Cluster, a Trace or a schedule"
    )


@draw.register
def _(thing: Picture) -> Picture:
    return thing


@draw.register
def _(thing: Torus) -> Picture:
    return grid(thing) if len(thing.dims) == 2 else cube(thing)


draw.register(ShardedArray, drawn)
draw.register(NVLinkDomain, domains)
draw.register(Cluster, tree)
draw.register(Trace, trace_timeline)
draw.register(Hierarchy, hierarchy)
draw.register(CollectiveMatmul, collective_matmul)
draw.register(WaveSchedule, tiles)
draw.register(PipelineSchedule, timeline)
