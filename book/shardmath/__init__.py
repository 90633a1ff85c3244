"""Shardmath: the arithmetic of scaling models, executable.

Import modules from their packages, as in ``from shardmath.hardware import chips``. Each
package imports only from those listed above it:

    base          units, values with their sources, tables, and claims that can fail
    hardware      chips and the networks between them, meshes, rooflines
    transformer   a Transformer's matmuls, parameters, FLOPs, bytes and memory
    collectives   the bytes and the time of an AllReduce and the other collectives
    sharding      arrays over a mesh, resharding, sharded matmuls
    training      strategies, the training step derived from them, pipeline schedules
    inference     an engine step of a server: bound, prediction, and room for sequences
    serving       simulated requests to a server: latencies, rates in target, prices
    planner       the best meshes for a model on a machine
    measured      published measurements, compared with the bounds
    referee       compiled programs, compared with what was derived
    draw          pictures and live figures; nothing above imports it
    exercises     kinds of questions, the questions of each chapter, their checks
    grading       grading a folder of submissions, each in isolation

Only `referee`, `draw.plots`, `draw.live` and `grading` need more than Python itself:
``pip install "shardmath[notebook]"``.

From a terminal: ``shardmath plan llama3-70b v5p:16x16x16 --tokens 4M``, or
``shardmath serve llama3-8b h100:1 --rate 4 --input 1000 --output 200``.
"""

__version__ = "0.1.0"
