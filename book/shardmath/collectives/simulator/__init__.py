"""The step simulator: collectives played block by block over the links of a network.

Every chip holds real numbers. In a step, blocks travel over existing links, all at the
same time. A step takes the latency of a hop plus the bytes of its busiest link divided
by that link's bandwidth, and the next step begins when this one has ended. At the end
the numbers are compared with those that the collective must produce. So the simulator
shows two things that no formula can: that a schedule is correct, and how long it takes.

>>> from shardmath.hardware.mesh import Mesh
>>> from shardmath.hardware.networks import Network, Ring
>>> mesh = Mesh(Network((Ring(4, 50e9, 1e-6),)), {"X": 4})
>>> trace = simulate("all_gather", 8e6, mesh, "X")
>>> print(trace)
AllGather over X (4 devices), 8 MB: 62 µs in 2 steps, as the closed form
>>> print(trace.steps[1])
step 2 of 2: 21 µs, 1 MB on the busiest link
>>> simulate("all_reduce", 8e6, mesh, "X", data=[[1, 2, 3, 4]] * 4).result[0]
(4, 8, 12, 16)
"""

from .playing import LARGEST, play, simulate
from .trace import PlayedStep, Trace

__all__ = ["LARGEST", "PlayedStep", "Trace", "play", "simulate"]
