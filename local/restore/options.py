"""The options of `streakline restore`."""

import argparse
from datetime import datetime
from pathlib import Path

from rules.days import parse_moment

# analytics.restore.restorer.RESTORED, which takes a second to import, and phones; a test holds them equal.
TABLES = (
    *("Erasures", "RuleBooks", "RewardsLedger", "DailyActivity", "UserStreaks", "Rewards", "IdempotencyKeys"),
    *("BPEvents", "Subscriptions"),
)
FROM_ROWS = ("Event", "Questions")  # of others_restored, which are never replaced


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--to",
        type=instant,
        metavar="INSTANT",
        help="what was written before it comes back: a whole second, 2026-11-24T03:00:00Z; all if left out",
    )
    parser.add_argument("--lake", metavar="BUCKET", help="of another stack that is gone; its own if left out")
    parser.add_argument(
        "--from-table",
        action="append",
        default=[],
        type=copy_of,
        metavar="TABLE=NAME",
        help="fill a table first from one that came back by point-in-time recovery: Responses=responses-0300",
    )
    damaged = "a damaged table: it gets what the lake has, and loses what the lake does not have"
    alone = "a table to leave alone"
    for name, which, text in (("--replace", TABLES, damaged), ("--keep", (*TABLES, *FROM_ROWS), alone)):
        parser.add_argument(name, action="append", default=[], choices=which, metavar="TABLE", help=text)
    parser.add_argument(
        "--report", type=Path, default=Path("restore.json"), metavar="FILE", help="what could not be had"
    )


def instant(text: str) -> datetime:
    """Read a whole second. Raises argparse.ArgumentTypeError."""
    try:
        found = parse_moment(text).utc
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if found.microsecond:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole second: streams tell seconds")
    return found


def copy_of(text: str) -> tuple[str, str]:
    """Read TABLE=NAME. Raises argparse.ArgumentTypeError."""
    table, is_there, name = text.partition("=")
    if not (table and is_there and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not TABLE=NAME")
    return table, name
