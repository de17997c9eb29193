"""The options of `streakline import`."""

import argparse
from pathlib import Path

STALLED_SECONDS = 60.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=".csv, .ndjson or .parquet: events (user_id, event_type, occurred_at, ...), or opening positions"
        " (user_id, as_of, streak, longest, last_date, balance, ...)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only check all lines, and write down those that are refused"
    )
    parser.add_argument(
        "--leave-refused",
        action="store_true",
        help="take in the others although some are refused; these are kept in a file, to be mended",
    )
    parser.add_argument(
        "--stalled",
        type=float,
        default=STALLED_SECONDS,
        metavar="SECONDS",
        help="how long the comparison waits while nothing more arrives (%(default)s)",
    )
