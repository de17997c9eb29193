"""The options of `streakline amnesty`."""

import argparse
import getpass
from datetime import datetime
from pathlib import Path

from rules.days import parse_moment


def _instant(text: str) -> datetime:
    try:
        return parse_moment(text).utc
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=text, description=text)

    declare = action("declare", "say that the dates which an outage touched are no misses; then apply it")
    instant = "an instant with its zone, such as 2026-03-01T22:10:00Z"
    declare.add_argument("--from", dest="since", type=_instant, required=True, help=f"its begin: {instant}")
    declare.add_argument("--to", dest="until", type=_instant, required=True, help=f"its end: {instant}")
    zones = "only for users of these zones, separated by commas; a zone that has two names is named by both"
    declare.add_argument("--zones", default="", help=zones)
    declare.add_argument("--reason", required=True, help="why, for those who ask later")
    declare.add_argument("--author", default=getpass.getuser(), help="who says so; your user name")
    _whom(declare, "only for these users, one a line")
    apply = action("apply", "give it to all whom it concerns; run again, it writes nothing")
    revoke = action("revoke", "take it back from all who have it")
    for each in (apply, revoke):
        each.add_argument("number", type=int, help="of the amnesty, as `list` shows it")
        _whom(each, "to these users alone, one a line")
    action("list", "all amnesties")


def _whom(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--users", type=Path, metavar="FILE", help=text)
    parser.add_argument("--dry-run", action="store_true", help="only say who would gain what")
