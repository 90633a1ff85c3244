"""One function draws every object of the package that has a picture."""

import drawn
import pytest

from shardmath.collectives import Hierarchy
from shardmath.collectives.simulator import simulate
from shardmath.draw.pictures import draw
from shardmath.hardware import networks as net
from shardmath.hardware.chips import H100, TPU_V4, TPU_V5E
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.waves import dispatch
from shardmath.sharding import CollectiveMatmul, array, contract
from shardmath.training.pipeline_schedules import schedule

RING = Mesh(net.Torus(TPU_V5E, (16, 16)), {"X": 16, "Y": 16})
NODES = Mesh(net.Cluster(net.NVLinkDomain(H100), 4), {"node": 4, "gpu": 8})
MATMUL = "A[I_X, J] · B[J, K_X] -> C[I, K_X]"
THINGS = {
    "array": array("A[I_X, J]", {"X": 4}, I=8, J=8),
    "torus": net.Torus(TPU_V5E, (4, 4)),
    "cubes": net.Torus(TPU_V4, (4, 4, 8)),
    "domain": net.NVLinkDomain(H100),
    "cluster": net.Cluster(net.NVLinkDomain(H100), 4),
    "trace": simulate("all_gather", 8e6, RING, "X"),
    "hierarchy": Hierarchy(1e9, NODES, "gpu", "node"),
    "overlap": CollectiveMatmul(contract(MATMUL, RING, I=4096, J=8192, K=8192)),
    "waves": dispatch([1e-6] * 133, 132),
    "pipeline": schedule("1f1b", stages=4, microbatches=8),
}


@pytest.mark.parametrize("name", THINGS)
def test_an_object_has_one_picture(name):
    picture = draw(THINGS[name])
    if name not in ("waves",):  # its marks are placed by `svg.plot`
        drawn.check(picture)
    assert draw(picture) is picture


@pytest.mark.parametrize("name", THINGS)
def test_an_object_knows_nothing_of_its_picture(name):
    assert not hasattr(THINGS[name], "picture")
    assert not hasattr(THINGS[name], "_repr_mimebundle_")


@pytest.mark.parametrize("thing", [None, 3, "A[I, J]", [THINGS["torus"]], object])
def test_what_has_no_picture_is_refused(thing):
    with pytest.raises(ValueError, match="must be an object that has a picture"):
        draw(thing)
