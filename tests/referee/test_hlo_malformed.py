"""Whatever stands in the text: it is read, or a ValueError quotes the line."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmath.referee import hlo

STORE = Path(__file__).parents[1] / "data" / "hlo"
TEXTS = {
    **{path.stem: path.read_text() for path in sorted(STORE.glob("*.txt"))},
    **{p.stem: p.read_text() for p in sorted((STORE / "composed").glob("*.txt"))},
}
MESHES = {
    "gather_matmul": {"X": 8, "Y": 1},
    "slices": {"X": 2, "Y": 4},
    **{path.stem: {"X": 4} for path in (STORE / "composed").glob("*.txt")},
}
# Lines that carry meaning; of alike ones (copies, tuples) a few are enough.
WORDS = ("replica_groups", "source_target", "while(", "compare(", "send", "chain_id")
PIECES = [*'{}()",%=0', "-1", "100000000", "f32[", "%x", "constant(", "T(1,0)"]
PIECES += ["{{0,1}}", "index=9", "99999"]


def mesh_of(name: str) -> dict[str, int]:
    return MESHES.get(name.partition(".")[0], {"X": 4, "Y": 2})


@st.composite
def damaged(draw):
    """A stored text with one line cut, doubled, swapped or written over."""
    name = draw(st.sampled_from(sorted(TEXTS)))
    lines = TEXTS[name].splitlines()
    known = [n for n, line in enumerate(lines) if any(w in line for w in WORDS)]
    at = draw(st.sampled_from(known or [0]) | st.integers(0, len(lines) - 1))
    line = lines[at]
    how = draw(st.sampled_from(["cut", "double", "swap", "write", "digit"]))
    start = draw(st.integers(0, len(line)))
    end = min(len(line), start + draw(st.integers(0, 12)))
    if how == "double":
        lines.insert(at, line)
    elif how == "swap":
        other = draw(st.integers(0, len(lines) - 1))
        lines[at], lines[other] = lines[other], line
    elif how == "cut":
        lines[at] = line[:start] + line[end:]
    elif how == "write":
        lines[at] = line[:start] + draw(st.sampled_from(PIECES)) + line[end:]
    else:
        digit = draw(st.sampled_from("0123456789"))
        lines[at] = line[:start] + digit + line[start + 1 :]
    return name, "\n".join(lines)


@settings(max_examples=300)
@given(damaged())
def test_damaged_text_is_read_or_refused(case):
    name, text = case
    for reader in (lambda: hlo.read(text, mesh_of(name)), lambda: hlo.flops(text),
                   lambda: hlo.overlaps(text)):  # fmt: skip
        try:
            reader()
        except ValueError:
            continue


GATHER = (
    "%y = f32[8]{0} all-gather(%x), channel_id=1, replica_groups={}, dimensions={0}"
)


def toy(line: str) -> str:
    return f"""HloModule toy, num_partitions=8
ENTRY %main (x: f32[4]) -> f32[8] {{
  %x = f32[4]{{0}} parameter(0)
  ROOT {line}
}}
"""


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("%x)", "%z)", "%z is not defined above"),
        ("%x)", "%y)", "%y is not defined above"),
        ("%x)", "%x", "no closing parenthesis"),
        ("%y =", "%x =", "twice"),
        ("%y =", "y :", "cannot read"),
        ("all-gather(", "all gather (", "cannot read|no closing"),
        ("all-gather(%x)", "fusion(%x), calls=%no", "no computation %no"),
        ("all-gather(%x)", "while(%x)", "lacks an attribute"),
        ("all-gather(%x)", "get-tuple-element(%x)", "lacks an attribute"),
        ("={}", "=[8,1]<=[80]", "grid of 8 devices"),
        ("={}", "={{0,1}", "a brace is not closed"),
        ("f32[8]", "f32[8", ""),
    ],
)
def test_a_line_that_cannot_be_read_is_quoted(good, bad, said):
    line = GATHER.replace(good, bad, 1)
    assert line != GATHER
    if not said:  # the shape of a result is not needed
        assert len(hlo.read(toy(line), {"X": 8})) == 1
        return
    with pytest.raises(ValueError, match=said) as error:
        hlo.read(toy(line), {"X": 8})
    assert line[:40] in str(error.value)


def test_a_line_outside_of_any_computation_is_not_skipped():
    """A damaged head of a computation would hide all that stands in it."""
    text = toy(GATHER)
    with pytest.raises(ValueError, match=r"outside of any computation.*parameter"):
        hlo.read(text.replace("ENTRY %main", "ENTRY main"), {"X": 8})


def test_loops_that_never_end_are_noticed_at_once():
    text = TEXTS["nested.v5e-2x4"]
    assert "known_trip_count" not in text
    still = text.replace("s32[]{:T(128)} constant(1)", "s32[]{:T(128)} constant(0)")
    assert still != text
    with pytest.raises(ValueError, match="number of iterations can't be derived"):
        hlo.read(still, {"X": 4, "Y": 2})
