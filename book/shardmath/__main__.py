"""``shardmath plan llama3-70b v5p:16x16x16 --tokens 4M``: the best meshes."""

import argparse
import sys
from collections.abc import Sequence

from . import __version__
from .base.units import shortened
from .planner import plan
from .planner.plan import LEFT_OUT


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line and print a plan; 2 where something is wrong with it."""
    args = _parser().parse_args(words)
    try:
        found = plan(
            args.model,
            args.machine,
            args.tokens,
            args.seq,
            remat=args.remat,
            precision=args.precision,
            attention=args.attention,
            schedule=args.schedule,
            chunks=args.chunks,
            keys=args.keys,
            fixed=dict(map(_size, args.fix)),
            top=args.top,
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(found)
    if not found.ranking:
        return 1
    print(f"\n{found.table}\n\n{found.memory()}\n")
    print(*(f"limit: {why}" for why in found.limits), sep="\n")
    print(*(f"left out: {what}" for what in LEFT_OUT), sep="\n")
    return 0


def _size(text: str) -> tuple[str, int]:
    axis, _, size = text.partition("=")
    if not size.isdecimal():
        raise ValueError(f"--fix {shortened(text)}: must be like tensor=8")
    return axis, int(size)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("shardmath", description=__doc__)
    version = f"shardmath {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True)
    ours = commands.add_parser("plan", help="the best meshes for training a model")
    ours.add_argument("model", help="such as llama3-70b")
    ours.add_argument("machine", help="such as v5p:16x16x16, h100:64x8, gb200:72")
    ours.add_argument("--tokens", required=True, help="of a step: 4194304, or 4M")
    ours.add_argument("--seq", type=int, default=8192, help="tokens of a sequence")
    ours.add_argument("--remat", default="full", help="none, dots or full")
    ours.add_argument("--precision", default="bf16")
    ours.add_argument("--attention", default="causal", help="causal, half or full")
    ours.add_argument("--schedule", default="1f1b", help="of a pipeline")
    ours.add_argument("--chunks", type=int, help="of layers a stage, if interleaved")
    ours.add_argument("--keys", default="ring", help="ring, gather or ulysses")
    ours.add_argument(
        "--fix", action="append", default=[], metavar="AXIS=N", help="such as tensor=8"
    )
    ours.add_argument("--top", type=int, default=5, help="how many to show")
    return parser


if __name__ == "__main__":
    sys.exit(main())
