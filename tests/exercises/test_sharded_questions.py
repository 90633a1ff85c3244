"""Sharded questions: the result on every device, and what the program sends, decide."""

import json
import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from grading_material import best_walls

from shardmath import exercises
from shardmath.collectives import Collective
from shardmath.exercises import answers
from shardmath.exercises.kinds import Slip
from shardmath.exercises.kinds.sharded import DEVICES, Sharded
from shardmath.grading import sandbox

RING = [(i, (i + 1) % 8) for i in range(8)]


def question(**fields):
    default = {
        "id": "05.1",
        "title": "Gather",
        "task": "**Given** parts.\n\n**Wanted** the whole.",
        "stub": "def gather(x): ...",
        "mesh": {"X": 8},
        "shapes": lambda rng: ((8 * rng.randint(1, 4), 3),),
        "in_specs": (("X", None),),
        "out_spec": (),
        "spec": lambda a: a,
        "collectives": lambda a: [Collective("all_gather", ("X",), nbytes(a), 8)],
        "slips": (
            Slip(
                "gather by sum",
                lambda a: [Collective("all_reduce", ("X",), nbytes(a), 8)],
                "Nothing has to be added.",
            ),
        ),
        "hint": "Gather.",
        "solution": "```python\ndef gather(x):\n    return whole(x)\n```",
    }
    return Sharded(**(default | fields))


def contraction(view, **fields):
    default = {
        "view": view,
        "shapes": lambda rng: ((8, 16), (16, 24)),
        "in_specs": ((None, "X"), ("X", None)),
        "spec": lambda a, b: a @ b,
        "collectives": lambda a, b: [
            Collective("all_reduce", ("X",), 4 * a[0] * b[1], 8)
        ],
        "slips": (),
    }
    return question(**(default | fields))


def nbytes(shape):
    return 4 * math.prod(shape)


def gather(x):
    return jax.lax.all_gather(x, "X", tiled=True)


def by_sum(x):
    whole = jnp.zeros((8, *x.shape)).at[jax.lax.axis_index("X")].set(x)
    return jax.lax.psum(whole, "X").reshape(-1, x.shape[1])


def by_permutes(x):
    parts, me = [x], jax.lax.axis_index("X")
    for _ in range(7):
        parts.append(jax.lax.ppermute(parts[-1], "X", RING))
    return jnp.roll(jnp.stack(parts)[::-1], me + 1, 0).reshape(-1, x.shape[1])


def in_halves(x):
    left, right = x[:, :1], x[:, 1:]
    return jnp.concatenate([gather(left), gather(right)], 1)


def right_on_device_0(x):
    whole = gather(x)
    return jnp.where(jax.lax.axis_index("X") == 0, whole, 2 * whole)


@pytest.mark.parametrize(
    ("answer", "verdict", "slip", "word"),
    [
        (gather, "correct", "", "it sends AllGather over X (8 devices)"),
        (by_sum, "wrong", "gather by sum", "Nothing has to be added."),
        (by_permutes, "wrong", "", "7 × Permute over X"),
        (in_halves, "wrong", "", "result is right, but"),
        (
            right_on_device_0,
            "wrong",
            "right on one device",
            "devices 1 to 7 are not right. Only device 0 is right",
        ),
        (lambda x: gather(x)[:4], "wrong", "", "the shape is [4, 3]"),
        (lambda x: (x, x), "invalid", "", "one array"),
        (lambda x: jax.lax.psum(x, "Y"), "wrong", "", "unbound axis name"),
        (lambda x: None, "todo", "", "the local parts"),
        (3, "invalid", "", "int is not a function"),
    ],
)
def test_code_for_one_device(answer, verdict, slip, word):
    found = exercises.examine(question(), answer)
    assert (found.verdict, found.slip) == (verdict, slip), found
    assert word in found.message


def test_a_gradient_through_a_sum_is_that_of_shard_map():
    """Without its check a sum's gradient is summed again, eight times too large."""

    def gradient(w, x):
        def loss(w):
            return jax.lax.psum((x[0] @ gather(w)) ** 2, "X")

        return jax.grad(loss)(w)

    found = exercises.examine(answers.find("05.15"), gradient)
    assert found.verdict == "correct", found


def test_other_pieces_of_no_more_bytes_are_right_where_the_question_says_so():
    loose = question(at_most=True)
    assert exercises.examine(loose, in_halves).verdict == "correct"
    assert exercises.examine(loose, by_sum).verdict == "wrong"
    assert "wanted at most" in exercises.examine(loose, by_permutes).message


def test_nothing_may_be_sent_where_nothing_is_allowed():
    local = question(out_spec=("X", None), collectives=lambda a: [])
    assert "sends nothing" in exercises.examine(local, lambda x: x).message
    reverse = exercises.examine(local, lambda x: gather(x)[: x.shape[0]])
    assert reverse.verdict == "wrong"


@pytest.mark.parametrize(
    ("view", "answer", "verdict", "word"),
    [
        (
            "explicit",
            lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=jax.P()),
            "correct",
            "AllReduce over X",
        ),
        ("explicit", lambda a, b: a @ b, "wrong", "ShardingTypeError"),
        (
            "explicit",
            lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=jax.P("X")),
            "wrong",
            "sharded as P('X', None), not as P(None, None)",
        ),
        (
            "explicit",
            lambda a, b: jax.reshard(a, jax.P()) @ jax.reshard(b, jax.P()),
            "wrong",
            "AllGather over X",
        ),
        ("automatic", lambda a, b: a @ b, "correct", "AllReduce over X"),
        (
            "automatic",
            lambda a, b: jax.lax.with_sharding_constraint(a, jax.P()) @ b,
            "wrong",
            "AllGather over X",
        ),
    ],
)
def test_code_on_whole_arrays(view, answer, verdict, word):
    found = exercises.examine(contraction(view), answer)
    assert found.verdict == verdict, found
    assert word in found.message


def test_several_axes():
    both = question(
        mesh={"X": 4, "Y": 2},
        in_specs=(("X", "Y"),),
        shapes=lambda rng: ((8, 6),),
        out_spec=(None, "Y"),
        collectives=lambda a: [Collective("all_gather", ("X",), nbytes(a) / 2, 4)],
    )
    assert exercises.examine(both, gather).verdict == "correct"


def test_evidence_that_claims_whole_inputs_pays_for_their_gathering():
    """Believing the shardings of the evidence would make every gather free."""
    honest, forged = question(), question(in_specs=((),))
    task = honest.draw("x")
    evidence = forged.collect(lambda x: x, task)
    assert forged.judge(evidence, task).verdict == "wrong"  # it sends nothing at all
    assert "AllGather" in honest.judge(evidence, task).message


def test_evidence_is_json_and_judged_in_another_process_of_the_sandbox():
    record = next((q for q in registered()), None)
    tasks = {record.id: record.draw("x")}
    evidence = {record.id: record.collect(worked(record), tasks[record.id])}
    job = {"evidence": evidence, "tasks": tasks, "skip": [], "have": []}
    told = json.loads(json.dumps(job))
    ran = sandbox.run(
        *("shardmath.grading.sandboxed", told, [record.id]),
        sandbox.Limits(seconds=60),
        rung=best_walls(),
    )
    assert ran.ended == ""
    assert ran.results[record.id]["verdict"] == "correct", ran


def in_a_loop(loop):
    """A reduction whose sends stand in the body of `loop`, 7 turns round the ring."""

    def body(x):
        def turn(_, state):
            total, part = state
            part = jax.lax.ppermute(part, "X", RING)
            return total + part, part

        return loop(turn, (x, x))[0]

    return body


def scanned(turn, state):
    return jax.lax.scan(lambda s, _: (turn(0, s), None), state, None, length=7)[0]


def nested(turn, state):
    state = turn(0, state)
    return jax.lax.fori_loop(0, 3, lambda _, s: jax.lax.fori_loop(0, 2, turn, s), state)


def while_data_says(turn, state):
    """As many turns, but no text tells: the first value of each part is counted."""
    return jax.lax.while_loop(
        lambda s: (s[2] < 7) | jnp.isnan(s[0]).all(),
        lambda s: (*turn(0, s[:2]), s[2] + jnp.where(jnp.isnan(s[0]).all(), 0, 1)),
        (*state, jnp.int32(0)),
    )[:2]


def branching(turn, state):
    """Both branches send, so both are counted: one permute too many."""
    state = jax.lax.fori_loop(0, 6, turn, state)
    known = jax.lax.psum(state[0][0, 0], "X") > 0
    return jax.lax.cond(
        known, lambda s: turn(0, s), lambda s: turn(0, (s[0], s[1] * 1.0)), state
    )


@pytest.mark.parametrize(
    ("loop", "verdict", "word"),
    [
        (scanned, "correct", "7 × Permute"),
        (lambda turn, s: jax.lax.fori_loop(0, 7, turn, s), "correct", "7 × Permute"),
        (nested, "correct", "7 × Permute"),
        (while_data_says, "wrong", "how often a loop sends"),
        (branching, "wrong", "8 × Permute"),
    ],
)
def test_sends_in_loops_and_branches_are_counted_or_the_finding_says_why(
    loop, verdict, word
):
    ring = question(
        out_spec=(None, None),
        spec=lambda a: a.reshape(8, -1, a.shape[1]).sum(0),
        collectives=lambda a: [
            Collective("permute", "X", nbytes(a) / 8, 8, times=7),
        ],
        slips=(),
    )
    found = exercises.examine(ring, in_a_loop(loop))
    assert found.verdict == verdict, found
    assert word in found.message


CHAIN = answers.questions()["01.13"]


def rows(a, b, v):
    return jax.lax.map(lambda row: (row @ b) @ v, a)


def rows_right(a, b, v):
    once = b @ v
    return jax.lax.map(lambda row: row @ once, a)


def by_fori(a, b, v):
    def row(i, out):
        return out.at[i].set((a[i] @ b) @ v)

    return jax.lax.fori_loop(0, a.shape[0], row, jnp.zeros(a.shape[0]))


def by_nested_scan(a, b, v):
    def outer(_, row):
        return None, jax.lax.scan(
            lambda s, c: (s + row @ c[0] * c[1], None), 0.0, (b.T, v)
        )[0]

    return jax.lax.scan(outer, None, a)[1]


def while_small(a, b, v):
    def going(state):
        return (state[0] < a.shape[0]) & jnp.isfinite(state[1]).all()

    def row(state):
        i, out = state
        return i + 1, out.at[i].set((a[i] @ b) @ v)

    return jax.lax.while_loop(going, row, (0, jnp.zeros(a.shape[0])))[1]


def either(a, b, v):
    def dear(a, b, v):
        return (a @ b) @ v

    return jax.lax.cond(a[0, 0] > 9, dear, lambda a, b, v: a @ (b @ v), a, b, v)


@pytest.mark.parametrize(
    ("answer", "verdict", "word"),
    [
        (lambda a, b, v: a @ (b @ v), "correct", "at most"),
        (rows_right, "correct", "at most"),
        (lambda a, b, v: (a @ b) @ v, "wrong", "flops"),
        (rows, "wrong", "flops"),
        (by_fori, "wrong", "flops"),
        (by_nested_scan, "wrong", "flops"),
        (either, "wrong", "flops"),
        (while_small, "wrong", "how often a loop runs"),
    ],
)
def test_flops_in_loops_count_as_often_as_they_run(answer, verdict, word):
    """Each turn of a loop multiplies: a loop is no way to hide a matmul."""
    found = exercises.examine(CHAIN, answer)
    assert found.verdict == verdict, found
    assert word in found.message


@pytest.mark.parametrize("record", [CHAIN, question()], ids=["compiled", "sharded"])
@pytest.mark.parametrize(
    "evidence", [{}, {"program": 3}, {"program": "%%%"}, {"program": "AAAA"}]
)
def test_evidence_that_is_no_program_is_invalid(record, evidence):
    assert record.judge(evidence, record.draw("x")).verdict == "invalid"


def test_a_kernel_with_too_few_devices_says_what_to_do():
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/exercises']\n"
        "import jax; jax.config.update('jax_num_cpu_devices', 2)\n"
        "from test_sharded_questions import exercises, gather, question\n"
        "print(exercises.examine(question(), gather))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "invalid" in told.stdout, told.stderr
    assert f'"jax_num_cpu_devices", {DEVICES}' in told.stdout


@pytest.mark.parametrize(
    "fields",
    [{"view": "magic"}, {"mesh": {"X": 2 * DEVICES}}],
    ids=["view", "devices"],
)
def test_a_record_that_cannot_be_judged_is_refused(fields):
    with pytest.raises(ValueError, match="must"):
        question(**fields)


# Every registered question


def registered():
    return [q for q in answers.questions().values() if isinstance(q, Sharded)]


def worked(record):
    """What the worked solution defines last."""
    code = exercises.prose(record.solution).split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(f"import jax\nimport jax.numpy as jnp\n{code}", names)
    return next(reversed(names.values()))


@pytest.mark.parametrize("record", registered(), ids=lambda record: record.id)
def test_the_worked_solution_is_right_on_two_draws(record):
    for seed in ("a", "b"):
        found = exercises.examine(record, worked(record), seed)
        assert found.verdict == "correct", found


@pytest.mark.parametrize("record", registered(), ids=lambda record: record.id)
def test_slips_differ_from_what_is_allowed_and_from_each_other(record):
    from shardmath.referee.ledger import compare

    shapes = [tuple(shape) for shape in record.draw("a")]
    allowed = [record.collectives(*shapes)]
    for slip in record.slips:
        assert not any(compare(one, slip.wrong(*shapes)).exact for one in allowed)
        allowed.append(slip.wrong(*shapes))


def test_memory_decides_where_it_is_asked_for():
    """Gathered weights that are kept for the backward pass are held, all at once."""

    def gradient(layer):
        def of(x, w):
            return jax.grad(lambda w: jnp.sum(jax.lax.scan(layer, x, w)[0]))(w)

        return of

    def layer(x, shard):
        whole = jax.lax.all_gather(shard, "X", axis=0, tiled=True)
        return jnp.tanh(x @ whole), None

    asked = question(
        shapes=lambda rng: ((16, 64), (4, 64, 64)),
        in_specs=(("X", None), (None, "X", None)),
        out_spec=(None, "X", None),
        spec=lambda x, w: jax.grad(
            lambda w: jnp.sum(
                jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]
            )
        )(w),
        collectives=lambda x, w: [
            Collective("all_gather", ("X",), nbytes(w[1:]), 8, times=8),
            Collective("reduce_scatter", ("X",), nbytes(w[1:]), 8, times=4),
        ],
        at_most=True,
        holds=lambda x, w: 2 * nbytes(w[1:]) + 12 * nbytes(x) / 8,
        slips=(),
    )
    task = asked.draw("a")
    forgets, keeps = (
        asked.judge(asked.collect(gradient(one), task), task)
        for one in (jax.checkpoint(layer), layer)
    )
    assert (forgets.verdict, keeps.verdict) == ("correct", "wrong")
    assert "besides arguments and result; wanted at most" in keeps.message
