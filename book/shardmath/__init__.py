"""Shardmath: the arithmetic of scaling models, executable.

Import a module from the package, such as ``from shardmath.hardware import chips, roofline``.
These need nothing but Python:

    units               base units, and how numbers are printed with prefixes
    facts, records      values with their sources; things that are found by name
    chips               accelerators: what one chip computes, holds and moves
    estimate            times, their lower bounds, and what limits an operation
    tables              results as a table, in a terminal and on a page
    roofline            how long must an operation take on one chip?
    waves               tiles over the SMs of a GPU, wave by wave
    systolic            a TPU's matrix unit, cycle by cycle
    networks            TPU slices and pods, NVLink domains, clusters
    mesh                named axes on a network, and the links that each gets
    collectives         what an AllReduce and its kin move, and how long it takes
    simulator           collectives played over the links of a network
    sharding            arrays over a mesh, resharding, sharded matmuls
    transformer         a Transformer's matmuls, parameters, FLOPs, bytes and memory
    causal_ring         causal attention on a ring of chips
    pipeline_schedules  1F1B, zero bubble, DualPipe and others as data
    parallelism         where arrays lie, and the training step that follows
    planner             the best meshes for a model on a machine
    published           training runs that others measured, next to their bounds
    hlo, ledger         what compiled programs send, against what was predicted
    drawing             SVG, labels, and a picture's text for who cannot see it
    pictures, objects   pictures of what the other modules compute
    figures             the live figures: settings in, picture and numbers out
    checks, guess       claims and guesses of the chapters
    questions, answers  kinds of questions, and the questions of each chapter
    elsewhere, extras   what a notebook or an installation may lack

These need ``pip install "shardmath[notebook]"``:

    plots               plots in the book's style (matplotlib)
    programs            JAX programs on a mesh, compiled and read (JAX)
    compilers           what compilers of absent machines said of programs (JAX)
    live                a figure with controls in a notebook (anywidget)
    grading             grading a notebook or a folder of them

From a terminal: ``shardmath plan llama3-70b v5p:16x16x16 --tokens 4M``.
"""

__version__ = "0.1.0"
