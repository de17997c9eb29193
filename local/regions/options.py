"""The options of `streakline region`."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from local.regions.promoting import DRAIN_SECONDS_MAX

ACTIONS = ("status", "start", "promote", "return")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="status: who writes; start: the first region begins; promote: the stack's region becomes the"
        " writer; return: it follows the writer, once all that nobody saw was told and applied",
    )
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=DRAIN_SECONDS_MAX,
        metavar="N",
        help="promote: how long what was sent may take to arrive (default: %(default)g)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="return: only tell what the writer never saw; nothing changes"
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=Path(f"region-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"),
        metavar="FILE",
        help="return: what was unseen, applied and listed (default: region-NOW.json)",
    )
