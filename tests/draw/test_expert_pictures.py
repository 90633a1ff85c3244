"""Pictures of experts: who sends how many tokens to whom, and loads against slots."""

import drawn
import pytest

from shardmath.draw import pictures

SENT = [[3, 1, 0], [2, 4, 5], [6, 7, 8]]


def test_the_dispatch_transposes_the_grid():
    picture = pictures.exchange(SENT)
    drawn.check(picture)
    cells = []
    for panel in picture.panels:
        texts = [said for said, _ in drawn.texts(panel)]
        rows = [i for i, said in enumerate(texts) if said.startswith("chip")]
        ends = [*rows[1:], len(texts)]
        found = [texts[a + 1 : b] for a, b in zip(rows, ends, strict=True)]
        cells.append([[int(said) for said in row] for row in found])
    before, after = cells
    counts = [row[:3] for row in before]  # an "all" stands at the end
    assert counts == SENT
    assert [row[3] for row in before] == [4, 11, 21]
    assert [row[:3] for row in after] == [list(c) for c in zip(*SENT, strict=True)]


@pytest.mark.parametrize("sent", [[[1]], [[1, 2]], [[1, 2], [3]], [[1, -1], [0, 2]]])
def test_what_is_no_square_of_counts_is_refused(sent):
    with pytest.raises(ValueError, match="sent"):
        pictures.exchange(sent)


@pytest.mark.parametrize("count", [-1, 1.5, "a", True])
def test_a_count_is_refused_as_it_was_given(count):
    with pytest.raises(ValueError, match=rf"sent\[1\]\[0\] = {count!r}: must be"):
        pictures.exchange([[0, 2], [count, 2]])


def test_bars_are_to_scale_and_cut_at_the_slots():
    picture = pictures.loads({"before": [8, 4, 0, 4], "after": [4, 4, 4, 4]}, slots=5)
    drawn.check(picture)
    assert "before: 4 experts, the busiest has 2 times the mean of 4" in picture.desc
    assert "18.8% above 5 slots" in picture.desc
    before, after = (
        [float(box.get("height")) for box in drawn.elements(panel, "rect")]
        for panel in picture.panels
    )
    assert sum(before[:2]) == pytest.approx(2 * before[2], abs=0.2)  # 5 + 3, and 4
    assert before[0] == pytest.approx(5 / 3 * before[1], abs=0.2)
    assert len(set(after)) == 1


@pytest.mark.parametrize("given", [{}, {"a": []}, {"a": [-1, 2]}, {"a": [0, 0]}])
def test_no_loads_are_refused(given):
    with pytest.raises(ValueError, match="must"):
        pictures.loads(given)


@pytest.mark.parametrize("slots", [0, -3, float("nan")])
def test_no_slots_are_refused(slots):
    with pytest.raises(ValueError, match="slots"):
        pictures.loads({"a": [1, 2]}, slots=slots)
