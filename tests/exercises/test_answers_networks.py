"""Questions of chapter 04 whose truth is a formula: held against the package."""

import random

import pytest

from shardmath.collectives import all_reduce
from shardmath.exercises import answers
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus

QUESTIONS = answers.chapter("04")


def test_the_least_time_on_any_tree_is_the_bound_of_the_package():
    question, draw, bound_by = QUESTIONS["04.16"], random.Random(4), set()
    cases = [question.cases(draw) for _ in range(60)]
    for nbytes, gpus, nodes, pods, up, out, taper in [*question.examples, *cases]:
        node = NVLinkDomain(chips.H100, gpus, bandwidth=up)
        sizes, thinner = (pods, nodes), (taper, 1)
        tree = Cluster(node, sizes, egress=gpus * out, taper=thinner)
        priced = all_reduce(nbytes, Mesh(tree, {"X": tree.chips}), "X")
        seconds = question.spec(nbytes, gpus, nodes, pods, up, out, taper)
        assert seconds == pytest.approx(priced.bandwidth_seconds)
        bound_by.add(priced.level)
    assert bound_by == {"NVLink", "leaf", "spine"}  # every way out is asked for


def test_the_printed_total_of_a_task_is_that_of_the_record():
    question, printed = QUESTIONS["04.18"], 2 * chips.B200.domain_total
    assert f"{printed / 1e12:g} TB/s" in question.task
    assert question.expected() == printed / 4


def test_the_bisection_of_any_slice_is_that_of_the_package():
    question, draw = QUESTIONS["04.11"], random.Random(4)
    shapes = [((16, 16), 50e9), ((8, 16), 50e9), ((4, 8), 50e9)]
    for shape, link in shapes:
        torus = Torus(chips.TPU_V5E, shape, bandwidth=link)
        wraps = [ring.wrap for ring in torus.dims]
        assert question.spec(list(shape), wraps, link) == torus.bisection
    for _ in range(20):
        sides, wraps, link = question.cases(draw)
        if len(sides) == 2:
            torus = Torus(chips.TPU_V5E, tuple(sides), bandwidth=link, wrap=wraps)
            assert question.spec(sides, wraps, link) == pytest.approx(torus.bisection)
