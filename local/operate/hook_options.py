"""The options of `streakline hook` and `webhooks`, apart from what carries them out: that imports slowly."""

import argparse

from rules.leads.hooks import FORMS_PER_MINUTE, OVERLAP

OVERLAP_HOURS = int(OVERLAP.total_seconds() // 3600)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline hook`."""
    parser.add_argument("action", choices=("add", "list", "rotate", "remove"))
    parser.add_argument("--organization", metavar="ORG")
    parser.add_argument("--source", help="whose webhooks: a file of ingest/leads/sources")
    parser.add_argument(
        "--secret-file", metavar="FILE", help="the vendor's own secret or public key; -: stdin"
    )
    parser.add_argument(
        "--overlap-hours", type=int, default=OVERLAP_HOURS, help="the old secret's, at `rotate`"
    )
    parser.add_argument(
        "--origin", action="append", default=[], help="a page that may send forms; repeatable"
    )
    parser.add_argument("--thanks", metavar="URL", help="where a browser goes after a form")
    parser.add_argument(
        "--per-minute", type=int, default=FORMS_PER_MINUTE, help="forms that an address sends"
    )


def add_webhooks_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline webhooks`."""
    parser.add_argument("action", choices=("list", "replay"))
    parser.add_argument("--endpoint", metavar="ID", help="replay: to this endpoint alone, with one of:")
    parser.add_argument("--user", help="replay: all that is kept of this user, in order")
    parser.add_argument("--lead", metavar="ID", help="replay: all that is kept of this lead, in order")
    parser.add_argument("--question", metavar="ID", help="replay: that this question was closed")
    parser.add_argument("--since", metavar="INSTANT", help="replay: of these, from then on")
