"""Meshes and times on the command line.

shardmath plan llama3-70b v5p:16x16x16 --tokens 4M     the best meshes
shardmath serve llama3-70b h100:8 --rate 4 --input 1000 --output 200
                                                       latencies under a load
shardmath predict runs.csv --json                      the time of each run
shardmath predict servers.json --json                  the latency of each server
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence

from . import __version__
from .base.units import shortened
from .hardware.networks import Network, network
from .measured.predict_file import predict_file, to_table
from .planner import plan
from .planner.plan import LEFT_OUT
from .serving import LatencyTarget, plain, serve, text


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 2 if an argument is wrong, 1 if no mesh is found."""
    args = _parser().parse_args(words)
    try:
        found = args.run(args)
        sys.stdout.flush()
        return found
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads the output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _plan(args: argparse.Namespace) -> int:
    found = plan(
        args.model,
        _machine(args),
        args.tokens,
        args.seq,
        remat=args.remat,
        precision=args.precision,
        attention=args.attention,
        schedule=args.schedule,
        chunks=args.chunks,
        keys=args.keys,
        overlap=tuple(args.overlap),
        node_limit=args.node_limit,
        hbm=None if args.hbm is None else args.hbm * 2**30,
        fixed=_fixed(args.fix),
        top=args.top,
    )
    print(found)
    if not found.ranking:
        return 1
    print(f"\n{found.table}\n\n{found.memory()}\n")
    print(*(f"limit: {why}" for why in found.limits), sep="\n")
    print(*(f"left out: {what}" for what in LEFT_OUT), sep="\n")
    print(f"\n{found.flags()}")
    return 0


def _serve(args: argparse.Namespace) -> int:
    found = serve(
        args.model,
        _machine(args),
        args.rate,
        args.input,
        args.output,
        weights=args.weights,
        cache=args.cache,
        activations=args.activations,
        tensor=args.tensor,
        data=args.data,
        expert=args.expert,
        pipeline=args.pipeline,
        target=LatencyTarget(
            _seconds("ttft", args.ttft), _seconds("tpot", args.tpot), args.share
        ),
        reserve=args.reserve,
        seed=args.seed,
    )
    if args.json:
        print(json.dumps(plain(found, args.price), indent=1))
    else:
        print(text(found, args.price))
    return 0


def _machine(args: argparse.Namespace) -> str | Network:
    """The machine, with the bandwidth between its nodes if it is given."""
    if args.egress is None:
        return args.machine
    return network(args.machine, 1e9 * args.egress)


def _fixed(given: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for axis, size in map(_size, given):
        if found.setdefault(axis, size) != size:
            one, two = (shortened(f"{axis}={n}") for n in (found[axis], size))
            raise ValueError(f"--fix {one} --fix {two}: must be given once")
    return found


def _seconds(name: str, given: str) -> float:
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)(m?s)?", given)
    if found is None or float(found[1]) == 0:
        raise ValueError(
            f"--{name} {shortened(given)}: must be a time, like 50ms or 2s"
        )
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def _predict(args: argparse.Namespace) -> int:
    answers = predict_file(args.file)
    if args.json:
        print(json.dumps([one.plain for one in answers], indent=1))
    else:
        print(to_table(answers))
    return 0


def _size(text: str) -> tuple[str, int]:
    axis, _, size = text.partition("=")
    if not size.isdecimal():
        wanted = "must be an axis and its size, like tensor=8"
        raise ValueError(f"--fix {shortened(text)}: {wanted}")
    return axis, int(size)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "shardmath",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"shardmath {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True)
    _add_plan(commands)
    _add_serve(commands)
    file = commands.add_parser("predict", help="how long runs or servers will take")
    file.add_argument(
        "file", help="CSV or JSON, a table of runs or of servers; see measured/*.csv"
    )
    file.add_argument("--json", action="store_true", help="print a JSON list")
    file.set_defaults(run=_predict)
    return parser


def _add_machine(parser: argparse.ArgumentParser, examples: str) -> None:
    parser.add_argument("machine", help=f"such as {examples}")
    parser.add_argument(
        "--egress", type=float, help="one-way GB/s of a node, where no source has it"
    )


def _add_plan(commands: argparse._SubParsersAction) -> None:
    ours = commands.add_parser("plan", help="the best meshes for training a model")
    ours.add_argument("model", help="such as llama3-70b")
    _add_machine(ours, "v5p:16x16x16, h100:512, gb200:72")
    ours.add_argument("--tokens", required=True, help="per step: 4194304 or 4M")
    ours.add_argument("--seq", type=int, default=8192, help="tokens per sequence")
    ours.add_argument("--remat", help="a policy; by default, the least that fits")
    ours.add_argument("--precision", default="bf16")
    ours.add_argument("--attention", default="causal", help="causal, half or full")
    ours.add_argument("--schedule", default="1f1b", help="of the pipeline")
    ours.add_argument("--chunks", type=int, help="chunks per stage, if interleaved")
    ours.add_argument("--keys", help="ring, gather or ulysses; by default, any")
    ours.add_argument(
        "--overlap",
        action="append",
        default=[],
        metavar="WHAT",
        help="tensor or experts: exchanges that the framework overlaps",
    )
    ours.add_argument("--node-limit", type=int, help="most nodes of a token's experts")
    ours.add_argument(
        "--hbm", type=float, help="GiB of a chip to use; by default, nine tenths"
    )
    ours.add_argument(
        "--fix", action="append", default=[], metavar="AXIS=N", help="such as tensor=8"
    )
    ours.add_argument("--top", type=int, default=5, help="meshes to show")
    ours.set_defaults(run=_plan)


def _add_serve(commands: argparse._SubParsersAction) -> None:
    ours = commands.add_parser("serve", help="latencies and rates of a server")
    ours.add_argument("model", help="such as llama3-70b")
    _add_machine(ours, "h100:8, v5e:4x4, gb200:72")
    ours.add_argument("--rate", type=float, required=True, help="requests per second")
    ours.add_argument("--input", type=int, required=True, help="tokens per prompt")
    ours.add_argument("--output", type=int, required=True, help="tokens per answer")
    ours.add_argument("--weights", default="bf16", help="fp8, int4, nvfp4, …")
    ours.add_argument("--cache", help="format of keys and values; by default, bf16")
    ours.add_argument("--activations", help="format in which matmuls multiply")
    ours.add_argument("--tensor", type=int, help="by default, that of the best layout")
    ours.add_argument("--data", type=int, default=1, help="groups of attention")
    ours.add_argument("--expert", type=int, default=1, help="groups of experts")
    ours.add_argument("--pipeline", type=int, default=1, help="stages of layers")
    ours.add_argument("--ttft", default="2s", help="target: time to first token")
    ours.add_argument("--tpot", default="50ms", help="target: time per output token")
    ours.add_argument(
        "--share", type=float, default=0.9, help="of requests within the targets"
    )
    ours.add_argument("--reserve", type=float, help="share of memory that engines keep")
    ours.add_argument("--price", type=float, help="dollars per chip-hour")
    ours.add_argument("--seed", type=int, default=0, help="of the arrivals")
    ours.add_argument("--json", action="store_true", help="print one JSON object")
    ours.set_defaults(run=_serve)


if __name__ == "__main__":
    sys.exit(main())
