"""The measured servers of the live figures: derived from the rows, and plausible."""

from itertools import groupby
from statistics import median

import pytest
import server_points as tool

from shardmath.measured import server_points
from shardmath.measured.rows import named_rows
from shardmath.measured.server_points import front, points


def test_the_file_holds_what_the_rows_give():
    """If this fails after a change of rows: python tools/server_points.py."""
    kept = tool.Path(server_points.__file__).with_suffix(".csv").read_text("utf-8")
    assert kept == tool.table()


def test_littles_law_gives_the_throughput_that_a_sweep_measured():
    """Two H100s from 1 to 250 clients, of which a table has all three numbers."""
    nim = [line for line in named_rows("serving.csv") if line["source"] == "nim"]
    assert len(nim) == 8
    for line in nim:
        told = dict(part.split("=") for part in line["values"].split())
        one = points()[0]._replace(
            clients=int(line["concurrency"]),
            chips=2,
            output=float(line["output"]),
            ttft=float(told["ttft"]) / 1e3,
            tpot=float(told["itl"]) / 1e3,
        )
        assert 2 * one.per_chip == pytest.approx(float(told["tokens"]), rel=0.03)


def test_a_front_is_what_nobody_beats():
    some = [(p.user, p.per_chip) for p in points() if p.model == "gpt-oss-120b"]
    kept = front(some)
    for point in some:
        beaten = any(
            one != point and one[0] >= point[0] and one[1] >= point[1] for one in some
        )
        assert (point in kept) != beaten


def test_more_clients_give_a_user_less():
    """In most sweeps that differ in nothing but their clients."""

    def alike(p):
        return p.model, p.hardware, p.layout, p.chips, p.lengths

    falls = []
    for _, some in groupby(sorted(points(), key=alike), alike):
        order = sorted(some, key=lambda p: p.clients)
        falls += [order[0].user >= order[-1].user]
    assert sum(falls) > 0.9 * len(falls)


def test_kernels_are_those_of_a_model_and_not_of_its_batch():
    """Steps with prompts start each of them twice, so the means vary by less."""
    counts = [p.kernels for p in points() if p.model == "Llama 3.1 70B"]
    assert 500 < min(counts) <= median(counts) <= max(counts) < 2.1 * min(counts)
