"""The simulated server next to a published sweep over concurrencies.

NVIDIA NIM 1.8.0, Llama 3.3 70B in fp8 on two H100s, prompts of 5,000 tokens and answers
of 500 (docs of NIM for LLMs, benchmarking, performance).
"""

import pytest

from shardmath.collectives import price_of
from shardmath.hardware.mesh import Mesh
from shardmath.inference import Batch, Formats, Layout, Server
from shardmath.serving import Demand, Engine, simulate
from shardmath.transformer import model

SWEEP = {  # clients: seconds between tokens, tokens of answers per second
    1: (0.01858, 51.67),
    5: (0.02183, 218.48),
    25: (0.03875, 623.4),
    50: (0.05973, 814.37),
    100: (0.09291, 917.26),
    250: (0.0932, 920.12),
}
PROMPT, ANSWER = 5000, 500
# What decodes at once when the server is full, by Little's law from the last row, with
# the fraction of a second that a request is in prefill.
SLOTS = round(920.12 / ANSWER * (0.0932 * (ANSWER - 1) + 0.5))


@pytest.fixture(scope="module")
def work():
    """Seconds of a step in which nothing overlaps, with all of the hardware's rates."""
    server = Server(
        model("llama 3 70b"), "h100:2", Layout(2), Formats("fp8", cache="fp8")
    )
    mesh = Mesh(server.network, {"tensor": 2})
    sums = 2 * server.model.layers
    hops = sums * price_of("all_reduce", 1.0, mesh, "tensor").latency_seconds

    def seconds(batch: Batch) -> float:
        decode = server.decode(batch.decode, batch.context) if batch.decode else None
        prompts = server.step(Batch(0, 0, batch.prefill)) if batch.prefill else None
        if decode is None:
            return hops + max(prompts.hbm, prompts.math) + prompts.network
        found = hops + max(decode.hbm, decode.math) + decode.network
        return found + (prompts.math + prompts.network if prompts else 0.0)

    return seconds


def played(seconds, clients: int):
    demand = Demand.closed_loop(clients, max(10, 8 * clients), PROMPT, ANSWER)
    return simulate(seconds, Engine(SLOTS), demand)


def test_one_number_gives_the_whole_sweep(work):
    """The share of the rates that one client sees; everything else follows: the step
    with a batch, the share of prefill, and that more than so many clients wait."""
    share = played(work, 1).mean_tpot / SWEEP[1][0]
    assert 0.6 < share < 0.66
    for clients, (between, rate) in SWEEP.items():
        result = played(lambda batch: work(batch) / share, clients)
        assert result.mean_tpot == pytest.approx(between, rel=0.05), clients
        assert result.steady() == pytest.approx(rate, rel=0.05), clients
        waits = result.ttft(50) > 5
        assert waits == (clients > SLOTS)


def test_prefill_first_describes_this_server_worse(work):
    share = played(work, 1).mean_tpot / SWEEP[1][0]
    demand = Demand.closed_loop(100, 400, PROMPT, ANSWER)
    engine = Engine(SLOTS, budget=8192, chunked=False)
    first = simulate(lambda batch: work(batch) / share, engine, demand)
    chunks = played(lambda batch: work(batch) / share, 100)
    off = [abs(one.tpot(50) / SWEEP[100][0] - 1) for one in (chunks, first)]
    assert off[0] < off[1], off
