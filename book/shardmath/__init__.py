"""Shardmath: the arithmetic of scaling models, executable.

Import a module from its package, such as ``from shardmath.hardware import chips``. Each
package uses only those above it:

    base          units, values with their sources, tables, and claims that can fail
    hardware      chips and the networks between them, meshes, rooflines
    transformer   a Transformer's matmuls, parameters, FLOPs, bytes and memory
    collectives   what an AllReduce and its kin move, and how long it takes
    sharding      arrays over a mesh, resharding, sharded matmuls
    training      strategies, the training step that follows, pipeline schedules
    inference     an engine step of a server: bound, prediction, and room for sequences
    serving       requests played on a server: latencies, rates in a target, prices
    planner       the best meshes for a model on a machine
    measured      what others measured, next to the bounds
    referee       what compilers made of programs, against what was derived
    draw          pictures and live figures; nothing above imports it
    exercises     kinds of questions, the questions of each chapter, their checks
    grading       grading a folder of submissions, each in isolation

Only `referee`, `draw.plots`, `draw.live` and `grading` need more than Python itself:
``pip install "shardmath[notebook]"``.

From a terminal: ``shardmath plan llama3-70b v5p:16x16x16 --tokens 4M``, or
``shardmath serve llama3-8b h100:1 --rate 4 --input 1000 --output 200``.
"""

__version__ = "0.1.0"
