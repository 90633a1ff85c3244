"""How long the simulator of servers takes: seconds of CPU for 10,000 requests.

python benchmarks/serving.py
"""

import time

from shardmath.inference import Formats, Layout, Server
from shardmath.serving import Demand, Engine, Lognormal, simulate
from shardmath.transformer import model

REQUESTS = 10_000


def main() -> None:
    server = Server(model("llama 3 70b"), "h100:8", Layout(tensor=8), Formats("fp8"))
    lengths = Lognormal(1000, 0.7, 16_000), Lognormal(200, 0.7, 4000)
    pages = int(server.memory.tokens // 16)
    for rate, few in ((2, pages), (10, pages), (10, 4000)):
        demand = Demand.poisson(rate, REQUESTS, *lengths)
        engine = Engine(slots=256, pages=few)
        start = time.process_time()
        result = simulate(lambda batch: server.step(batch).seconds, engine, demand)
        seconds = time.process_time() - start
        steps = sum(one.steps for one in result.stretches[0])
        print(
            f"{rate:2} requests/s, {few:7,} pages: {seconds:.2f} s for "
            f"{REQUESTS:,} requests, {steps:,} steps in {len(result.stretches[0]):,} "
            f"stretches, {result.preemptions:,} preemptions"
        )


if __name__ == "__main__":
    main()
