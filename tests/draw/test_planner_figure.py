"""The plans that the planner's page keeps are those that a search finds."""

from pathlib import Path

import pytest

from shardmath.draw.objects import plans
from shardmath.hardware import chips
from shardmath.transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B

SAMPLE = (
    (LLAMA_3_8B, chips.H100, 16),
    (LLAMA_3_70B, chips.TPU_V6E, 256),
    (LLAMA_3_405B, chips.H100, 16384),
)
NONE_FITS = LLAMA_3_405B, chips.H100, 8


@pytest.mark.parametrize("job", SAMPLE, ids=lambda job: plans.key(*job))
def test_the_file_has_what_a_search_finds(job):
    """If this fails after a change of the derivation: python tools/plans.py."""
    found = plans.searched(*job, plans.TOKENS, plans.SEQ, None)
    kept = plans.stored(*job, plans.TOKENS, plans.SEQ, None)
    assert plans.row(found) == plans.table()[plans.key(*job)]
    assert kept.fitting == found.fitting
    assert [str(one) for one in kept.plan.ranking] == [
        str(one) for one in found.plan.ranking
    ]
    assert str(kept.plan.fastest) == str(found.plan.fastest)
    assert kept.plan.reason == found.plan.reason


@pytest.mark.parametrize("job", SAMPLE, ids=lambda job: plans.key(*job))
def test_what_is_kept_agrees_with_the_derivation(job):
    """Seconds and bytes of the file are those of the step that the page derives."""
    for one in plans.stored(*job, plans.TOKENS, plans.SEQ, None).plan.ranking[:4]:
        assert one.seconds == pytest.approx(one.prediction.seconds, rel=1e-6)
        assert one.candidate.nbytes == pytest.approx(one.memory.total)


def test_what_the_file_lacks_is_searched_for():
    """Another batch, sequence or policy, a job that nothing fits, a shape of one's
    own with a known name."""
    known = LLAMA_3_8B, chips.H100, 16
    assert plans.stored(*known, plans.TOKENS, plans.SEQ, None)
    assert plans.stored(*known, 2 * plans.TOKENS, plans.SEQ, None) is None
    assert plans.stored(*known, plans.TOKENS, 4096, None) is None
    assert plans.stored(*known, plans.TOKENS, plans.SEQ, "full") is None
    assert plans.stored(*NONE_FITS, plans.TOKENS, plans.SEQ, None) is None
    assert plans.key(*NONE_FITS) not in plans.table()


def test_the_file_is_as_the_tool_writes_it():
    path = Path(plans.__file__).with_name("plans.json")
    assert path.read_text("utf-8") == plans.text(plans.table())
