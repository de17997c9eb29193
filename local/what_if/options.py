"""The options of `streakline what-if`."""

import argparse
from datetime import UTC, date, datetime, time
from pathlib import Path

IN_FORCE = "in-force"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    text = (
        f"a file, as `rules check` takes it; `{IN_FORCE}`: the versions that were, which must change nothing"
    )
    parser.add_argument("book", metavar="BOOK", help=text)
    parser.add_argument("--from", dest="since", type=_day, help="the day from which it is in force (UTC)")
    parser.add_argument("--to", dest="until", type=_day, help="the day from which it no longer is")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page of plots: one HTML file")
    parser.add_argument(
        "--users", type=Path, metavar="FILE", help="write each user's figures, before and after: CSV"
    )


def _day(text: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no day, such as 2027-01-31") from None
