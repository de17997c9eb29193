"""The options of commands, apart from what carries the commands out: that is slow to import.

Options of commands that import little stand with their command: rules, rerate, plan.
"""

import argparse
import getpass
from datetime import UTC, date, datetime, time
from pathlib import Path

from ingest.web.caller import ADMIN, AGENTS, AUDIENCE, FULFILMENT, LEADS, PRODUCERS
from rules.days import parse_moment
from rules.leads.hooks import FORMS_PER_MINUTE, OVERLAP

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


# The options of `streakline hook` and `webhooks`, apart from what carries them out: that imports slowly.


OVERLAP_HOURS = int(OVERLAP.total_seconds() // 3600)


def hook_options(parser: argparse.ArgumentParser) -> None:
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


def webhooks_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline webhooks`."""
    parser.add_argument("action", choices=("list", "replay"))
    parser.add_argument("--endpoint", metavar="ID", help="replay: to this endpoint alone, with one of:")
    parser.add_argument("--user", help="replay: all that is kept of this user, in order")
    parser.add_argument("--lead", metavar="ID", help="replay: all that is kept of this lead, in order")
    parser.add_argument("--question", metavar="ID", help="replay: that this question was closed")
    parser.add_argument("--since", metavar="INSTANT", help="replay: of these, from then on")


# The options of `streakline import`.


STALLED_SECONDS = 60.0


def import_options(parser: argparse.ArgumentParser) -> None:
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


# The options of `streakline amnesty`.


def _moment(text: str) -> datetime:
    try:
        return parse_moment(text).utc
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def amnesty_options(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=text, description=text)

    declare = action("declare", "say that the dates which an outage touched are no misses; then apply it")
    instant = "an instant with its zone, such as 2026-03-01T22:10:00Z"
    declare.add_argument("--from", dest="since", type=_moment, required=True, help=f"its begin: {instant}")
    declare.add_argument("--to", dest="until", type=_moment, required=True, help=f"its end: {instant}")
    zones = "only for users of these zones, separated by commas; a zone that has two names is named by both"
    declare.add_argument("--zones", default="", help=zones)
    declare.add_argument("--reason", required=True, help="why, for those who ask later")
    declare.add_argument("--author", default=getpass.getuser(), help="who says so; your user name")
    _user_options(declare, "only for these users, one a line")
    apply = action("apply", "give it to all whom it concerns; run again, it writes nothing")
    revoke = action("revoke", "take it back from all who have it")
    for each in (apply, revoke):
        each.add_argument("number", type=int, help="of the amnesty, as `list` shows it")
        _user_options(each, "to these users alone, one a line")
    action("list", "all amnesties")


def _user_options(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--users", type=Path, metavar="FILE", help=text)
    parser.add_argument("--dry-run", action="store_true", help="only say who would gain what")


# The options of `streakline prove`, `check-proof` and `audit`.


def prove_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline prove`."""
    parser.add_argument("--user", required=True, metavar="ID")
    parser.add_argument(
        "--entry", default="", metavar="ID", help="an entry's id or seq; the newest with a root"
    )
    parser.add_argument("--out", type=Path, default=Path("proof.json"), help="where to write it: proof.json")


def check_proof_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline check-proof`."""
    parser.add_argument("file", type=Path)
    parser.add_argument("--root", required=True, help="as it was announced: 64 hexadecimal digits")


def audit_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `streakline audit`."""
    parser.add_argument(
        "--user", action="append", default=[], metavar="ID", help="these alone; all if left out"
    )


# The options of `streakline restore`.


# analytics.restore.restorer.RESTORED, which takes a second to import, and phones; a test holds them equal.
TABLES_RESTORED = (
    *("Erasures", "RuleBooks", "RewardsLedger", "DailyActivity", "UserStreaks", "Rewards", "IdempotencyKeys"),
    *("BPEvents", "Subscriptions"),
)
TABLES_FILLED = ("Event", "Questions")  # those are never replaced


def restore_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--to",
        type=whole_second,
        metavar="INSTANT",
        help="what was written before it comes back: a whole second, 2026-11-24T03:00:00Z; all if left out",
    )
    parser.add_argument("--lake", metavar="BUCKET", help="of another stack that is gone; its own if left out")
    parser.add_argument(
        "--from-table",
        action="append",
        default=[],
        type=table_copy,
        metavar="TABLE=NAME",
        help="fill a table first from one that came back by point-in-time recovery: Responses=responses-0300",
    )
    damaged = "a damaged table: it gets what the lake has, and loses what the lake does not have"
    alone = "a table to leave alone"
    for name, which, text in (
        ("--replace", TABLES_RESTORED, damaged),
        ("--keep", (*TABLES_RESTORED, *TABLES_FILLED), alone),
    ):
        parser.add_argument(name, action="append", default=[], choices=which, metavar="TABLE", help=text)
    parser.add_argument(
        "--report", type=Path, default=Path("restore.json"), metavar="FILE", help="what could not be had"
    )


def whole_second(text: str) -> datetime:
    """Read a whole second. Raises argparse.ArgumentTypeError."""
    try:
        found = parse_moment(text).utc
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if found.microsecond:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole second: streams tell seconds")
    return found


def table_copy(text: str) -> tuple[str, str]:
    """Read TABLE=NAME. Raises argparse.ArgumentTypeError."""
    table, is_there, name = text.partition("=")
    if not (table and is_there and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not TABLE=NAME")
    return table, name


# The options of `streakline what-if`.


IN_FORCE = "in-force"


def what_if_options(parser: argparse.ArgumentParser) -> None:
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
