"""`streakline rules`: books of rules are checked, compared, published and shown."""

import getpass
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from adapters.book_store import PublicationConflict, shipped_document
from adapters.platform.objects import Objects
from ingest.book_document import book_of_document
from ingest.rules_api import NOW, Proposal, publish, version_view
from local.book_file import BookFile, read_file
from local.command import FILE, FILE_OUT, Reader, as_yaml, command, option
from local.stack import Stack
from local.stores import books_of, lake_of
from rules.book.book_schema import BOOK
from rules.book.daily import NO_REST, daily_rules
from rules.book.document import BookRefused, most_points, read_book
from rules.book.succession import differences
from rules.days import parse_moment
from rules.engagement.goals import beginnings, rest_days_line

DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
INSTANT = "a date (midnight UTC), or an instant with its zone, such as 2027-01-01T00:00:00Z"


def _instant(text: str) -> datetime:
    """Read INSTANT; raises ValueError."""
    try:
        return parse_moment(f"{text}T00:00:00Z" if DATE.fullmatch(text) else text).utc
    except ValueError as error:
        raise ValueError(f"{error}: {INSTANT}") from None


def _instant_or_now(text: str) -> datetime | None:
    """Read `--effective`. None is the moment at which the service takes the version."""
    return None if text == NOW else _instant(text)


book_argument = click.argument("file", type=FILE)
at_option = option("--at", type=Reader("instant", _instant), help=f"at {INSTANT}", show_default="now")


@command("rules init book.yaml")
@click.argument("file", type=FILE_OUT)
def init(file: Path) -> None:
    """Write the book that the service comes with, to begin a book of your own."""
    with file.open("x", encoding="utf-8") as out:
        out.write(as_yaml(shipped_document()))
    print(f"{file}: change it, then `streakline rules check {file}`")


@command("rules schema > book.schema.json")
def schema() -> None:
    """Print the JSON Schema of a book, by which editors complete and check it."""
    print(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **BOOK}, indent=2))


@command("rules check book.yaml")
@book_argument
def check_command(file: Path) -> None:
    """Say what is wrong with a book, by line, or what its events and levels mean; needs no deployment."""
    book = check(file)
    lines = [*earnings(book.document), *level_spans(book.document)]
    lines += [*board_periods(book.document), *league_lines(book.document)]
    daily = daily_rules(book.document.get("daily"))
    first = "the first date that begins under it, in UTC,"
    if daily.rest != NO_REST.rest:
        lines.append(rest_days_line(NO_REST, daily, first))
    if daily.day_starts_at != NO_REST.day_starts_at:
        start = f"{daily.day_starts_at:%H:%M} by the clock on the wall"
        lines.append(
            f"day's start: from the second date that begins under it, in UTC, a date begins at {start}, and "
            "earlier times belong to the date before. No earlier date changes"
        )
    print(f"{file.name}: a book of rules", *lines, sep="\n")


@command("rules diff book.yaml", "rules diff book.yaml --at 2027-01-01")
@book_argument
@at_option
def diff(stack: Stack, file: Path, at: datetime | None) -> None:
    """Say how a book differs from the one in force."""
    lines = list(differences(_document(stack, at), check(file).document))
    print("\n".join(lines) or "no difference")


@command("rules show > book.yaml", "rules show --at 2027-01-01", "rules show --version 3 > book.yaml")
@at_option
@option(
    "--version", "number", type=int, help="this version in place of the one in force, also if it never was"
)
def show_command(stack: Stack, at: datetime | None, number: int | None) -> Any:
    """Print the book in force, or a version, as `rules publish` takes it."""
    if number is None:
        return _document(stack, at)
    if at is not None:
        raise RuntimeError("--at and --version each name a book: give one of them")
    books = books_of(stack)
    known = [version.number for version in books.look().versions]
    if number not in known:
        raise RuntimeError(
            f"there is no version {number}: `streakline rules list` has {min(known)} to {max(known)}"
        )
    return books.document(number)


@command("rules list")
def list_command(stack: Stack) -> Any:
    """Print all versions, the newest first."""
    return [version_view(version, is_admin=True) for version in reversed(books_of(stack).look().versions)]


@command('rules publish book.yaml --note "a rainy week"', "rules publish book.yaml --effective 2027-01-01")
@book_argument
@option(
    "--effective",
    type=Reader("instant", _instant_or_now),
    help=f"from when it is in force: {INSTANT}, or `{NOW}`",
    show_default=NOW,
)
@option("--note", default="", help="why, for those who come later")
@option("--rerate", is_flag=True, help="it may be in the past: run `streakline rules rerate` afterwards")
@option("--author", default=getpass.getuser, help="who says so", show_default="your user name")
def publish_command(
    *,
    stack: Stack,
    file: Path,
    effective: datetime | None,
    note: str,
    rerate: bool,
    author: str,
) -> Any:
    """Put a book into force; every function knows it within a minute."""
    book, store = check(file), books_of(stack)
    proposal = Proposal(book.document, effective, author, note, rerate)
    try:
        version = publish(store, proposal, datetime.now(UTC))
    except BookRefused as refused:
        raise RuntimeError(book.faults_text(refused)) from None
    except PublicationConflict:
        raise RuntimeError(
            "somebody else has just published a version: look at `streakline rules list`"
        ) from None
    view = version_view(version, is_admin=True)
    return view | {"beginnings": list(beginnings(store.look(), version))}


@command("rules recompute")
def recompute_command(stack: Stack) -> None:
    """Recompute all points from the lake's files, and say which weeks differ from the ledger."""
    print(recompute(lake_of(stack)))


def check(path: Path) -> BookFile:
    """Return the book in a file, if the service would accept it.

    Raises UnreadableBook, RuntimeError with a line for each fault, and OSError.
    """
    book = read_file(path)
    try:
        book_of_document(book.document)
    except BookRefused as refused:
        raise RuntimeError(book.faults_text(refused)) from None
    return book


def earnings(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each event type: what one event earns, at most, and what a user earns in a period.

    And one for each achievement with points.

    document: of a book without faults. Boosts are left out.
    """
    book = read_book(document)
    for name, section in document["event_types"].items():
        rule, most = book.event_types[name], most_points(section)
        each = f"{rule.points:,}" if most == rule.points else f"{rule.points:,} to {most:,}"
        cap = rule.cap()
        limit = f", at most {cap.points:,} a {cap.per}" if cap else ""
        yield f"  {name}: {each} points{limit}"
    for name, achievement in book.achievements.items():
        if achievement.points:
            yield f"  achievement {name}: {achievement.points:,} points, once a user"


def level_spans(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each level: the points ever earned that it stands for. document: as above."""
    levels = read_book(document).levels
    if levels and levels[0].points:
        yield f"  no level: up to {levels[0].points - 1:,} points ever earned"
    for level, following in zip_longest(levels, levels[1:]):
        end = f" to {following.points - 1:,}" if following else ""
        yield f"  level {level.name}: {level.points:,}{end} points ever earned"


def board_periods(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each board: its periods, and what divides it. document: as above."""
    for rule in read_book(document).daily.boards:
        periods = f"each {rule.per}" if rule.per else f"{rule.first} to {rule.last}"
        group = f", one for each {rule.group}" if rule.group else ""
        yield f"  board {rule.name}: points of {periods}{group}"


def league_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for the leagues, if there are any. document: as above."""
    if leagues := read_book(document).daily.leagues:
        yield (
            f"  leagues {', '.join(leagues.divisions)}: on board {leagues.board}, in cohorts of"
            f" {leagues.size}, {leagues.up} up and {leagues.down} down each week"
        )


def recompute(objects: Objects) -> str:
    """Return a sentence: how many weeks of users were compared, and that none differs.

    Raises RuntimeError with a line for each week that differs.
    """
    from analytics.recompute.point_weeks import differing_weeks  # imports DuckDB, which is slow

    weeks, differing = differing_weeks(objects)
    if differing:
        line = (
            "{user_id}, week of {week_start}: by the book {points_by_book}, "
            "by the events {points_by_events}, in the ledger {points_in_ledger}"
        )
        raise RuntimeError("\n".join(line.format(**week) for week in differing))
    return f"{weeks} weeks of users, none of which differs"


def _document(stack: Stack, at: datetime | None) -> Any:
    """Return the book that is in force at an instant; None: now."""
    store = books_of(stack)
    return store.document(store.look().at(at or datetime.now(UTC)).number)
