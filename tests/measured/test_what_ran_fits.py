"""What ran, fits: the memory of published runs against the HBM of their chips.

The least that such a run can hold is counted: a loss in pieces, no copy of the weights
next to the optimizer's, microbatches as published or else as small as can be, and
attention that never stores scores. If the
derivation still finds more than the chip has, it counts something that the system does
not hold.
"""

from shardmath.measured import RUNS
from shardmath.measured.run import SPLIT_SEQUENCES
from shardmath.sharding.machine import axes_of

HELD = "96 GB HBM2e"  # the note of H100s that have more memory than the record


def least_bytes(run):
    """The fewest bytes of HBM over all microbatches; None if no step can be derived."""
    groups = 1
    for axis, size in run.mesh.items():
        groups *= size if axis in SPLIT_SEQUENCES else 1
    most = run.seqs // groups
    counts = [m for m in range(1, most + 1) if most % m == 0 and m <= 256]
    counts = [run.microbatches] if run.microbatches else counts[-2:]
    found = []
    for count in counts:
        settings = {"microbatches": count, "loss": "pieces", "copy": False}
        settings["kernel"] = "fused"
        settings |= {"remat": run.remat or "full", "schedule": run.schedule or "1f1b"}
        try:
            one = run.step(**settings, chunks=run.chunks)
        except ValueError:
            continue
        found.append(one.memory.total)
    return min(found, default=None)


def test_what_ran_fits():
    known = [run for run in RUNS if run.covered and run.seqs]
    too_much, underived = [], 0
    for run in known:
        nbytes = least_bytes(run)
        if nbytes is None:
            underived += 1
            continue
        capacity = 96e9 if HELD in run.note else run.chip.memory_bytes
        if nbytes > capacity:
            too_much.append((run.model.name, run.chip.name, run.chips))
    assert len(known) > 380
    assert underived <= 12, "sizes that do not divide, microbatches that are not known"
    assert not too_much


def test_a_run_knows_its_axes():
    for run in RUNS:
        if run.covered and run.seqs:
            assert set(axes_of(run.ordered_mesh)) == set(run.strategy.axes) | {
                axis for axis, size in run.ordered_mesh.items() if size == 1
            }
