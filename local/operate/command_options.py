"""The options of commands that have many. What carries a command out is elsewhere: it is slow to import."""

import argparse
from datetime import UTC, date, datetime
from pathlib import Path

from ingest.web.caller import ADMIN, AGENTS, AUDIENCE, FULFILMENT, LEADS, PRODUCERS

GROUPS = {
    ADMIN: "reaches all users and may backfill",
    PRODUCERS: "sends events of any user, also those that only a server may declare",
    FULFILMENT: "undoes redemptions that cannot be fulfilled",
    AGENTS: "asks questions and reads the answers",
}
AUDIENCE_HELP = "sees and answers questions for this audience; repeatable"
LEADS_HELP = "sends, reads and mends the leads of this organization, and of no other; repeatable"
CALLER_HELP = "on behalf of a caller of this organization: leads of others are unknown; repeatable"


def groups_of(arguments: argparse.Namespace) -> list[str]:
    """Return the groups that the options of `user_options` name."""
    organizations = [f"{LEADS}{each}" for each in arguments.lead]
    tags = [f"{AUDIENCE}{each}" for each in arguments.audience]
    return organizations + tags + ([arguments.group] if arguments.group else [])


def user_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline token` and `streakline page`."""
    parser.add_argument("--user", required=True)
    may = parser.add_mutually_exclusive_group()
    for group, does in GROUPS.items():
        flag = f"--{group.rpartition('/')[2].removesuffix('s')}"
        may.add_argument(flag, dest="group", action="store_const", const=group, help=does)
    may.add_argument("--lead", action="append", default=[], metavar="ORG", help=LEADS_HELP)
    parser.add_argument("--audience", action="append", default=[], metavar="TAG", help=AUDIENCE_HELP)


def replay_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline replay`."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", type=Path, help="user_id, occurred_at, idempotency_key[, ...]")
    source.add_argument("--git", type=Path, metavar="PATH", help="a repository: each commit a contribution")
    source.add_argument("--purchases", type=Path, metavar="FILE", help="customer_id, date, quantity, amount")
    source.add_argument(
        "--orders", type=Path, metavar="FILE", help="the same file as order webhooks of leads"
    )
    parser.add_argument("--via", choices=("http", "kinesis", "queue", "both"), default="http")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="in another order")
    parser.add_argument("--twice", action="store_true", help="every event two times")


def verify_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline verify`."""
    parser.add_argument("file", type=Path)
    parser.add_argument("--as-of", type=date.fromisoformat, default=datetime.now(UTC).date())


def redrive_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline redrive`."""
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--list", action="store_true", help="only show what waits, with ids and reasons")
    does.add_argument("--discard", metavar="ID", help="give one message up; it is kept for 30 days")
    does.add_argument("--discarded", action="store_true", help="show what was given up, by whom and why")
    does.add_argument("--take-back", metavar="ID", help="put what was given up into its queue again")
    parser.add_argument("--reason", metavar="TEXT", help="with --discard: why")
    parser.add_argument("--queue", metavar="NAME", help="only this failure queue, such as EngagementFailures")


def logs_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline logs`."""
    parser.add_argument("function", metavar="FUNCTION", help="such as Engagement or UsersApi")
    parser.add_argument(
        "--since", default="1h", metavar="WHEN", help="30s, 15m, 2h, 3d, or an instant (default: 1h)"
    )
    parser.add_argument("--follow", action="store_true", help="go on with what is logged from now on")


def rebuild_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline rebuild`."""
    parser.add_argument("what", choices=("features", "lake"))
    parser.add_argument("--from", dest="since", type=date.fromisoformat, help="lake: first day")
    parser.add_argument("--to", dest="until", type=date.fromisoformat, help="lake: last day, included")
    parser.add_argument("--entity", action="append", default=[], help="lake: only this; repeatable")
    parser.add_argument(
        "--user", action="append", default=[], metavar="ID", help="lake: days with rows of this; repeatable"
    )
    parser.add_argument(
        "--lead", action="append", default=[], metavar="ID", help="features: only this; repeatable"
    )
    parser.add_argument("--dry-run", action="store_true", help="features: count the leads, send nothing")


def recompute_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline recompute`."""
    parser.add_argument("--from", dest="since", type=date.fromisoformat, help="first day; all that is new")
    parser.add_argument("--to", dest="until", type=date.fromisoformat, help="last day, included")
    parser.add_argument("--dry-run", action="store_true", help="report differences, repair nothing")
    parser.add_argument(
        "--everybody", action="store_true", help="look closely at all, not at whose turn it is"
    )
    parser.add_argument(
        "--full", action="store_true", help="build the warehouse's models anew, and test all rows"
    )


def backfill_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline backfill`."""
    parser.add_argument("--from", dest="since", type=date.fromisoformat, required=True, help="first day")
    parser.add_argument("--to", dest="until", type=date.fromisoformat, required=True, help="last day")
    parser.add_argument("--rebuild", action="store_true", help="also the hours that are curated already")
    parser.add_argument("--workers", type=int, default=10, help="of type G.1X; 10")


def training_set_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline training-set`."""
    parser.add_argument("labels", type=Path, help="Parquet: lead_organization_id, as_of, anything else")
    parser.add_argument("out", type=Path, help="Parquet: the labels with the features")
    parser.add_argument("--known-by", action="store_true", help="leave out what arrived after the instant")
    parser.add_argument("--organization", action="append", metavar="ORG", help=CALLER_HELP)


def sql_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline sql`."""
    parser.add_argument("query", help="one SELECT in Redshift's SQL")
    parser.add_argument("--on", choices=("warehouse", "lake"), default="warehouse", help="warehouse")
    parser.add_argument("--out", type=Path, metavar="FILE", help="all rows, as .csv or .parquet; a table")


def person_options(parser: argparse.ArgumentParser, *, out: str, is_needed: bool) -> None:
    """Declare the options that name a person, and the file that a command writes."""
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--user", default="", metavar="ID")
    who.add_argument("--lead", default="", metavar="ID", help="with all leads that are the same person")
    parser.add_argument(
        "--organization", metavar="ORG", help="as its integration: leads of others are unknown"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", required=is_needed, help=out)


def certificate_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline certificate`."""
    parser.add_argument("file", type=Path)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--user", default="", metavar="ID", help="also check that it is about this user")
    who.add_argument("--lead", default="", metavar="ID", help="also check that it is about this lead")
