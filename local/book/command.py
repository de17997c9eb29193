"""`streakline rules check | diff | publish | show | list | recompute`."""

import argparse
import getpass
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adapters.book import BookStore, PublishedMeanwhile
from adapters.platform.objects import Objects, S3Objects
from ingest.book.publication import Proposal, checked, publish
from ingest.book.rules_api import version_view
from ingest.book.rules_schemas import NOW
from local.book.book_file import BookFile, read_file, written
from local.stack import Stack
from rules.book.book import differences
from rules.book.document import BookRefused
from rules.days import parse_moment
from rules.engagement.achievements import beginnings

DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
INSTANT = "a date (midnight UTC), or an instant with its zone, such as 2027-01-01T00:00:00Z"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=text, description=text)

    check = action("check", "say what is wrong with a book, by line; needs no deployment")
    check.add_argument("file", type=Path)
    diff = action("diff", "how a book differs from the one in force")
    diff.add_argument("file", type=Path)
    diff.add_argument("--at", type=_instant, help=f"from the one in force at this instant: {INSTANT}")
    put = action("publish", "put a book into force; every function knows it within a minute")
    put.add_argument("file", type=Path)
    put.add_argument(
        "--effective", type=_effective, help=f"from when it is in force: {INSTANT}, or `now`, as if left out"
    )
    put.add_argument("--note", default="", help="why, for those who come later")
    put.add_argument(
        "--rerate", action="store_true", help="it may be in the past: run `streakline rerate` afterwards"
    )
    put.add_argument("--author", default=getpass.getuser(), help="who says so; your user name")
    show = action("show", "the book in force, as `publish` takes it")
    show.add_argument("--at", type=_instant, help=f"the one in force at this instant: {INSTANT}")
    show.add_argument("--json", action="store_true", help="as JSON")
    action("list", "all versions, the newest first")
    action(
        "recompute", "recompute all points from the lake's files, and say which weeks differ from the ledger"
    )


def _instant(text: str) -> datetime:
    try:
        return parse_moment(f"{text}T00:00:00Z" if DATE.fullmatch(text) else text).utc
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: {INSTANT}") from None


def _effective(text: str) -> datetime | None:
    return None if text == NOW else _instant(text)


def check(path: Path) -> BookFile:
    """Return a book that makes sense; raises RuntimeError with a line for each fault."""
    book = read_file(path)
    try:
        checked(book.document)
    except BookRefused as refused:
        raise RuntimeError(book.told(refused)) from None
    return book


def run(arguments: argparse.Namespace, stack: Stack | None) -> None:
    """Carry out an action. stack: None for `check`, which needs none."""
    if stack is None:
        check(arguments.file)
        print(f"{arguments.file.name}: a book of rules")
        return
    if arguments.action == "recompute":
        print(recompute(S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])))
        return
    store = BookStore(stack.client("dynamodb"), stack.tables["RuleBooks"])
    now = datetime.now(UTC)
    if arguments.action == "publish":
        _publish(store, arguments, now)
        return
    books = store.look()
    if arguments.action == "list":
        _print([version_view(each, is_admin=True) for each in reversed(books.versions)])
        return
    document = store.document(books.at(arguments.at or now).number)
    if arguments.action == "show":
        print(json.dumps(document, indent=2) if arguments.json else written(document), end="")
    else:
        lines = list(differences(document, check(arguments.file).document))
        print("\n".join(lines) or "no difference")


def _publish(store: BookStore, arguments: argparse.Namespace, now: datetime) -> None:
    book = check(arguments.file)
    proposal = Proposal(
        book.document, arguments.effective, arguments.author, arguments.note, arguments.rerate
    )
    try:
        version = publish(store, proposal, now)
    except BookRefused as refused:
        raise RuntimeError(book.told(refused)) from None
    except PublishedMeanwhile:
        raise RuntimeError(
            "somebody else has just published a version: look at `streakline rules list`"
        ) from None
    _print(version_view(version, is_admin=True) | {"beginnings": list(beginnings(store.look(), version))})


def recompute(objects: Objects) -> str:
    """Return a line with what was compared; raises RuntimeError with a line for each week that differs."""
    from analytics.recompute.book_points import differing, recomputed_points

    weeks = recomputed_points(objects)
    found = [
        f"{user}, week of {monday}: by the book {book}, by the events {events}, in the ledger {ledger}"
        for user, monday, book, events, ledger in differing(weeks)
    ]
    if found:
        raise RuntimeError("\n".join(found))
    return f"{weeks.num_rows} weeks of users, none of which differs"


def _print(answer: Any) -> None:
    print(json.dumps(answer, indent=2))
