"""The options of `streakline hook`, apart from what carries it out: that is slow to import."""

import argparse

from rules.leads.hooks.hook import FORMS_PER_MINUTE, OVERLAP

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
