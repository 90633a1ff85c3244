"""Meshes and times on the command line.

shardmath plan llama3-70b v5p:16x16x16 --tokens 4M     the best meshes
shardmath predict runs.csv --json                      the time of each run
"""

import argparse
import json
import sys
from collections.abc import Sequence

from . import __version__
from .base.units import shortened
from .measured.predict_file import predict_file, to_table
from .planner import plan
from .planner.plan import LEFT_OUT


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line and do what it says; 2 where something is wrong with it."""
    args = _parser().parse_args(words)
    try:
        return args.run(args)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def _plan(args: argparse.Namespace) -> int:
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
    print(found)
    if not found.ranking:
        return 1
    print(f"\n{found.table}\n\n{found.memory()}\n")
    print(*(f"limit: {why}" for why in found.limits), sep="\n")
    print(*(f"left out: {what}" for what in LEFT_OUT), sep="\n")
    print(f"\n{found.flags()}")
    return 0


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
        raise ValueError(f"--fix {shortened(text)}: must be like tensor=8")
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
    ours = commands.add_parser("plan", help="the best meshes for training a model")
    ours.add_argument("model", help="such as llama3-70b")
    ours.add_argument("machine", help="such as v5p:16x16x16, h100:512, gb200:72")
    ours.add_argument("--tokens", required=True, help="of a step: 4194304, or 4M")
    ours.add_argument("--seq", type=int, default=8192, help="tokens of a sequence")
    ours.add_argument("--remat", help="a policy; as little as fits if not given")
    ours.add_argument("--precision", default="bf16")
    ours.add_argument("--attention", default="causal", help="causal, half or full")
    ours.add_argument("--schedule", default="1f1b", help="of a pipeline")
    ours.add_argument("--chunks", type=int, help="of layers a stage, if interleaved")
    ours.add_argument("--keys", help="ring, gather or ulysses; any if not given")
    ours.add_argument(
        "--fix", action="append", default=[], metavar="AXIS=N", help="such as tensor=8"
    )
    ours.add_argument("--top", type=int, default=5, help="how many to show")
    ours.set_defaults(run=_plan)
    file = commands.add_parser("predict", help="how long runs of a table will take")
    file.add_argument("file", help="a table in the columns of measured/training.csv")
    file.add_argument("--json", action="store_true", help="one list of objects")
    file.set_defaults(run=_predict)
    return parser


if __name__ == "__main__":
    sys.exit(main())
