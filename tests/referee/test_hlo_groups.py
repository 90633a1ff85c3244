"""Replica groups in every form that XLA writes, and the mesh axes they stand for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmath.referee.hlo import groups


@given(st.permutations(["X", "Y", "Z"]), st.integers(1, 3), st.data())
def test_groups_of_any_axes_in_any_form(order, count, data):
    """The same groups written in braces, counted, and by axes name the same axes."""
    sizes = {axis: data.draw(st.integers(2, 4)) for axis in "XYZ"}
    axes = sorted(order[:count])
    devices = np.arange(np.prod(list(sizes.values()))).reshape(list(sizes.values()))
    others = [i for i, axis in enumerate("XYZ") if axis not in axes]
    inside = [i for i, axis in enumerate("XYZ") if axis in axes]
    n = int(np.prod([sizes[axis] for axis in axes]))
    rows = devices.transpose(others + inside).reshape(-1, n).tolist()
    listed = "{{" + "},{".join(",".join(map(str, row)) for row in rows) + "}}"
    shape = ",".join(map(str, sizes.values()))
    turn = ",".join(map(str, others + inside))
    counted = f"[{len(rows)},{n}]<=[{shape}]T({turn})"
    named = ",".join(f"'{axis}'={size}" for axis, size in sizes.items())
    named = f"mesh[{named}] {{{','.join(repr(axis) for axis in axes)}}}"
    want = tuple(map(tuple, rows))
    for text in (listed, counted, named):
        found = groups.groups(text, devices.size)
        assert sorted(found) == sorted(want)
        assert groups.axes_of(found, sizes) == tuple(axes)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("[4,2]<=[8]", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (
            "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}",
            [[0, 1], [2, 3], [4, 5], [6, 7]],
        ),
        ("mesh['a'=8] {'a':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        (
            "mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}",
            [[0, 1], [2, 3]],
        ),
    ],
)
def test_groups_as_xla_writes_them(text, want):
    devices = sum(map(len, want))
    found = groups.groups(text, devices)
    assert sorted(sorted(group) for group in found) == want


@pytest.mark.parametrize(
    ("moves", "mesh", "want"),
    [
        ("{{0,1},{1,2},{2,3},{3,0}}", {"X": 4}, (("X",), 1)),
        ("{{1,0},{2,1},{3,2}}", {"X": 4}, (("X",), -1)),  # the last stays put
        ("{{0,4},{1,5},{2,6},{3,7},{4,0}}", {"X": 8}, (("X",), 4)),
        ("{{0,1},{1,0},{2,3},{3,2}}", {"X": 2, "Y": 2}, (("Y",), 1)),
        ("{{0,1},{1,2},{2,3},{3,0}}", {"X": 2, "Y": 2}, (("X", "Y"), 1)),
        ("{{0,1},{1,0},{2,3},{3,2}}", {"X": 4}, (("X",), None)),
        ("{{0,3},{1,2},{2,1},{3,0}}", {"X": 4}, (("X",), None)),
    ],
)
def test_shifts_of_permutes(moves, mesh, want):
    assert groups.shift_of(groups.pairs(moves, math.prod(mesh.values())), mesh) == want


@pytest.mark.parametrize("text", ["{0,1}", "[2,2]", "mesh{'a'}", "", "8"])
def test_other_forms_are_errors(text):
    with pytest.raises(ValueError, match="replica_groups="):
        groups.groups(text, 4)
