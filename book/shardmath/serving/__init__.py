"""Serving: requests, batches, queues and latency targets, simulated step by step.

>>> demand = Demand.closed_loop(clients=32, count=400, input=1000, output=200)
>>> result = simulate(lambda batch: 0.01 + 1e-5 * batch.tokens, Engine(32), demand)
>>> f"{result.throughput:,.0f} tokens/s"
'2,592 tokens/s'
"""

from .answer import LayoutAnswer
from .copies import Deployment
from .engine import Engine, Speculation
from .lengths import Fixed, Lengths, Lognormal, Sampled, Uniform
from .played import Stretch
from .report import plain, text
from .requests import Demand, Request
from .result import LatencyTarget, Served, ServingResult, percentile
from .serve import ServingPlan, serve
from .simulate import Pools, simulate, simulate_pools

__all__ = [
    "Demand",
    "Deployment",
    "Engine",
    "Fixed",
    "LatencyTarget",
    "LayoutAnswer",
    "Lengths",
    "Lognormal",
    "Pools",
    "Request",
    "Sampled",
    "Served",
    "ServingPlan",
    "ServingResult",
    "Speculation",
    "Stretch",
    "Uniform",
    "percentile",
    "plain",
    "serve",
    "simulate",
    "simulate_pools",
    "text",
]
