"""The live figures of servers: the played server, memory and slots, pools."""

import itertools
import json

import drawn
import pytest

from shardmath.__main__ import main
from shardmath.draw import figures
from shardmath.draw.figures import server as server_figure
from shardmath.draw.figures.pools import splits
from shardmath.draw.objects.servers import JOBS, averaged, deployment, steps_between
from shardmath.draw.picture import Picture
from shardmath.serving import Demand, Engine, serve, simulate

SERVER, SLOTS, POOLS, SERVE = map(figures.find, ("server", "slots", "pools", "serve"))


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


# From memory to slots ----------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, *SLOTS.presets.values()], ids=str)
def test_slots_can_be_read(params):
    shown(SLOTS, **params)


@pytest.mark.parametrize("model", SLOTS.control("model").options)
@pytest.mark.parametrize("chip", SLOTS.control("chip").options)
def test_every_model_on_every_chip_can_be_read(model, chip):
    for tensor, clients in itertools.product((1, 4, 16), (1, 4096)):
        shown(SLOTS, model=model, chip=chip, tensor=tensor, clients=clients)


def test_slots_are_one_division():
    """Llama 3.1 70B on two H100s: 68.45 billion weights of layers in fp8, two tables of
    128,256 rows in bf16, and 80 layers of 8 heads of 128 values, twice, for a token."""
    layers = 80 * (8192 * (8192 + 2 * 1024 + 8192) + 3 * 8192 * 28_672)
    tables = 2 * 128_256 * 8192 * 2
    memory = 81_559 * 2**20  # of an H100, as its driver reports it
    free = 0.9 * memory - (layers + tables) / 2
    token = 80 * 2 * 8 * 128 * 2 / 2
    pages = -(-(1024 + 512) // 16) * 16
    data = SLOTS.draw(clients=4096).data
    assert data["slots"] == int(free // (pages * token))
    assert data["free"] == pytest.approx(free, rel=0.005)
    assert data["admitted"] + data["waiting"] == 4096
    half = SLOTS.draw(clients=4096, cache="fp8").data
    assert half["slots"] in (2 * data["slots"], 2 * data["slots"] + 1)
    reserved = SLOTS.draw(pages="to the end, at admission").data
    assert reserved["slots"] == int(free // (2048 * token))


def test_a_model_that_does_not_fit_says_what_would():
    drawing = SLOTS.draw(tensor=1, weights="bf16")
    assert "on 2 chips" in drawing.summary
    assert drawing.data["slots"] == 0
    assert drawing.data["bound"] is None
    weights = drawn.keyed(drawing.svg, "weights")["weights"]
    room = drawn.keyed(drawing.svg, "HBM")["HBM"]
    assert float(weights.get("width")) > float(room.get("width"))


def test_the_parts_of_the_memory_are_all_of_it():
    drawing = SLOTS.draw()
    wide = [
        float(node.get("width"))
        for key, node in drawn.keyed(drawing.svg, "").items()
        if key in ("weights", "caches in use", "caches", "reserve")
    ]
    outline = drawn.keyed(drawing.svg, "HBM")["HBM"]
    assert sum(wide) == pytest.approx(float(outline.get("width")), abs=0.5)


def test_a_step_of_the_admitted_batch_is_between_bound_and_prediction():
    data = SLOTS.draw(clients=128).data
    assert 0 < data["bound"] < data["predicted"]
    assert data["admitted"] == 128


# Pools -------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, *POOLS.presets.values()], ids=str)
def test_pools_can_be_read(params):
    shown(POOLS, **params)


@pytest.mark.parametrize("job", JOBS)
def test_pools_can_be_read_at_their_extremes(job):
    for servers, prefill, rate in itertools.product((2, 12), (1, 11), (1, 128)):
        drawing = shown(POOLS, job=job, servers=servers, prefill=prefill, rate=rate)
        assert drawing.used == ({} if prefill < servers else {"prefill": 1})
        marks = drawn.keyed(drawing.svg, "split ")
        assert len(marks) == servers - 1


def test_the_rate_of_a_split_is_that_of_its_slower_pool():
    ways = splits(deployment("8B on an H100"), 6, 4096, 256)
    assert [one.prefill for one in ways] == [1, 2, 3, 4, 5]
    for one in ways:
        rates = {
            "prefill": one.prefill * one.prompts,
            "decode": one.decode * one.answers,
        }
        assert one.most == min(rates.values()) == rates[one.limit]
    data = POOLS.draw(input=4096, output=256).data
    assert data["rates"] == [one.most for one in ways]
    assert data["best"] == 1 + data["rates"].index(max(data["rates"]))


def test_requests_pile_up_above_the_rate_of_the_pools():
    calm, over = (POOLS.draw(rate=rate, prefill=1).data for rate in (4, 48))
    assert calm["most"] < 48
    assert over["apart"]["ttft 50"] > 10 * calm["apart"]["ttft 50"]


def test_pools_keep_prompts_out_of_decode():
    """Nine of ten requests have nearly the time per token of the median."""
    data = POOLS.draw(rate=16, prefill=3).data
    apart, together = data["apart"], data["together"]
    assert (
        apart["tpot 90"] / apart["tpot 50"] < together["tpot 90"] / together["tpot 50"]
    )
    assert apart["tpot 50"] < together["tpot 50"]


def test_a_slower_link_moves_a_cache_later():
    fast, slow = (POOLS.draw(link=link).data for link in (800, 50))
    assert slow["moving"] == pytest.approx(16 * fast["moving"])
    token = 32 * 2 * 8 * 128 * 2  # bytes of Llama 3.1 8B
    assert fast["moving"] == pytest.approx(4096 * token / 100e9)
    assert slow["apart"]["tpot 50"] > fast["apart"]["tpot 50"]
    assert slow["apart"]["ttft 50"] == fast["apart"]["ttft 50"]


# The calculator ----------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, *SERVE.presets.values()], ids=str)
def test_the_calculator_can_be_read(params):
    data = shown(SERVE, **params).data
    for metric in ("ttft", "tpot"):
        bound, likely, low, high = data[metric]
        assert 0 < bound < likely
        assert low is None or bound <= low <= likely <= high


@pytest.mark.parametrize("model", SERVE.control("model").options)
@pytest.mark.parametrize("chip", SERVE.control("chip").options)
def test_every_model_on_every_chip_says_something(model, chip):
    for ways, rate in itertools.product((1, 8), (1, 512)):
        drawing = shown(SERVE, model=model, chip=chip, ways=ways, rate=rate)
        assert drawing.summary


def test_the_point_lies_on_the_curve():
    """The curve is in closed form, and the point was played request by request."""
    for params in SERVE.presets.values():
        drawing = SERVE.draw(**params)
        point = drawn.keyed(drawing.svg, "point")["point"]
        path = drawn.keyed(drawing.svg, "likely")["likely"].get("d")
        places = [tuple(map(float, one.split())) for one in path[1:].split("L")]
        x, y = float(point.get("cx")), float(point.get("cy"))
        (ax, ay), (bx, by) = next(
            (a, b) for a, b in itertools.pairwise(places) if a[0] <= x <= b[0]
        )
        assert y == pytest.approx(ay + (by - ay) * (x - ax) / (bx - ax), abs=8)


def test_the_calculator_agrees_with_the_function():
    data = SERVE.draw(rate=8).data
    one = serve("llama3-70b", "h100:8", 8, 1024, 256, weights="fp8", tensor=8).best
    assert data["tpot"][0] == pytest.approx(one.tpot_bound)
    assert data["tpot"][1] == pytest.approx(one.predicted("tpot"), rel=0.1)
    assert data["slots"] == one.slots
    assert data["capacity"] == pytest.approx(one.capacity, rel=0.15)
    assert data["dollars"] == pytest.approx(8 * 2.5 / 3600 / (8 * 256) * 1e6)


def test_a_rate_above_the_most_is_said():
    drawing = shown(SERVE, rate=512)
    assert "cannot do 512 requests/s" in drawing.summary
    assert "tpot" not in drawing.data
    assert drawing.readout


@pytest.mark.parametrize("preset", ["70B, two copies", "DeepSeek-V3 on 8 H200"])
def test_the_command_of_the_calculator_runs(preset, capsys):
    command = SERVE.draw(**SERVE.presets[preset]).data["command"].split()
    assert main([*command[3:], "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["layouts"]
    assert one["layout"]["copies"] == (2 if preset.startswith("70B") else 1)


def test_attention_is_a_choice_of_models_with_experts_alone():
    assert "attention" in SERVE.draw().idle
    assert not SERVE.draw(model="DeepSeek-V3", chip="H200").idle
