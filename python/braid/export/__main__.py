"""python -m braid.export"""

import argparse
import logging
import sys

from ..errors import Error
from . import export


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m braid.export",
        description="Turns a model of transformers into a folder that braid runs.",
    )
    parser.add_argument("model", help="a folder in the Hub's layout; nothing is downloaded")
    parser.add_argument("-o", "--out", required=True, help="the folder to write")
    parser.add_argument("--tp", type=int, default=1, help="ranks")
    parser.add_argument("--dtype", choices=("f32", "f16", "bf16"), help="default: the model's own")
    parser.add_argument("--max-tokens", type=int, default=8192, help="of one run")
    parser.add_argument("--max-sequences", type=int, default=256, help="of one run")
    parser.add_argument("--context", type=int, help="tokens of a sequence; default: the model's")
    parser.add_argument("--page-size", type=int, default=16, help="tokens of a page of the cache")
    parser.add_argument("--pages", type=int, help="of the cache; default: one whole context")
    options = vars(parser.parse_args())
    logging.basicConfig(format="braid.export: remark: %(message)s")
    try:
        export(options.pop("model"), progress=_show, **options)
    except Error as error:
        print(f"braid.export: error: {error}", file=sys.stderr)
        return 2
    return 0


def _show(done: int, total: int, name: str) -> None:
    if sys.stderr.isatty():
        print(
            f"\r\033[K{done}/{total} {name}", end="" if name else "\n", file=sys.stderr, flush=True
        )


sys.exit(_main())
