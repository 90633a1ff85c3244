"""The live figures of servers: the played server, memory and slots, pools."""

import itertools

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures import server as server_figure
from shardmath.draw.objects.servers import JOBS, averaged, deployment, steps_between
from shardmath.draw.picture import Picture
from shardmath.serving import Demand, Engine, simulate

SERVER = figures.find("server")


def shown(figure, **params):
    drawing = figure.draw(**params)
    drawn.check(Picture(figure.name, drawing.summary, (drawing.svg,)))
    return drawing


# The time line of a server -----------------------------------------------------------


@pytest.mark.parametrize("params", [{}, *SERVER.presets.values()], ids=str)
def test_a_played_server_can_be_read(params):
    data = shown(SERVER, **params).data
    assert 0 < data["ttft"][50] <= data["ttft"][90] <= data["ttft"][99]
    assert data["pages"][0] <= data["pages"][1]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("rate", [1, 64])
def test_every_server_can_be_read_at_its_extremes(job, rate):
    for policy, size in itertools.product(
        (server_figure.CHUNKS, server_figure.FIRST), ((128, 32), (8192, 1024))
    ):
        shown(SERVER, job=job, rate=rate, policy=policy, input=size[0], output=size[1])


def test_the_numbers_are_those_of_the_simulation():
    load = server_figure.played(
        deployment("8B on an H100"), 8, 1024, 256, server_figure.CHUNKS, 100
    )
    data = SERVER.draw(rate=8).data
    assert data["ttft"][50] == load.result.ttft(50)
    assert data["tpot"][90] == load.result.tpot(90)
    assert data["throughput"] == load.result.throughput


def test_more_requests_make_everything_slower():
    found = [SERVER.draw(rate=rate).data for rate in (1, 4, 16, 64)]
    for name in ("ttft", "tpot"):
        medians = [data[name][50] for data in found]
        assert medians == sorted(medians)
    assert found[-1]["decoding"] > 5 * found[0]["decoding"]


def test_few_pages_preempt_and_queue():
    few, all_ = (SERVER.draw(rate=16, memory=memory) for memory in (15, 100))
    assert few.data["preemptions"] > 0 == all_.data["preemptions"]
    assert few.data["queue"] > all_.data["queue"]
    assert few.data["ttft"][90] > 2 * all_.data["ttft"][90]
    assert "preempted" in few.summary
    assert "preempted" not in all_.summary


def test_prompts_first_stop_decode():
    """No box of the lower lane lies under one of the upper lane."""
    for policy, beside in ((server_figure.CHUNKS, True), (server_figure.FIRST, False)):
        load = server_figure.played(
            deployment("8B on an H100"), 16, 1024, 256, policy, 100
        )
        (steps,) = load.result.stretches
        assert any(one.decode and one.prefill for one in steps) == beside


def test_a_request_that_does_not_fit_is_said():
    drawing = shown(SERVER, job="70B on 8 v5e, int8", memory=5, input=8192)
    assert "pages" in drawing.summary
    assert drawing.data == {"ttft": None}


def test_the_mark_moves_with_the_moment():
    places = []
    for moment in (0, 12, 23):
        drawing = SERVER.draw(moment=moment)
        mark = drawn.keyed(drawing.svg, "moment")["moment"]
        places.append(float(mark.get("x")))
        start, end = drawing.data["shown"]
        assert 0 <= start < end
    assert places == sorted(set(places))


def test_a_mean_over_columns_keeps_the_area():
    result = simulate(lambda b: 0.01, Engine(8), Demand.poisson(5, 50, 100, 20, seed=3))
    (steps,) = result.stretches
    end = result.end
    for field in ("decode", "queue", "pages"):
        columns = averaged(steps, field, end, 37)
        area = sum(getattr(one, field) * (one.end - one.start) for one in steps)
        assert sum(columns) * end / 37 == pytest.approx(area)


def test_single_steps_fill_a_span():
    result = simulate(lambda b: 0.01, Engine(8), Demand.closed_loop(2, 6, 100, 20))
    (steps,) = result.stretches
    inside = list(steps_between(steps, 0.105, 0.335))
    assert inside[0][0] == 0.105
    assert inside[-1][1] == 0.335
    assert len(inside) == 24
    lengths = [high - low for low, high, _ in inside]
    assert sum(lengths) == pytest.approx(0.23)
    assert max(lengths) == pytest.approx(0.01)
