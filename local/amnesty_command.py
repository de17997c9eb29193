"""`streakline amnesty`: declares that the dates of an outage are no misses, and applies that to users.

An amnesty that is applied again writes nothing.
"""

import getpass
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from adapters.engagement.amnesty_store import AmnestyApplier, AmnestyResult, AmnestyStore, NoAmnesty
from analytics.amnesty_users import users_concerned
from ingest.engagement.amnesty_bodies import amnesty_of_body, amnesty_view
from ingest.web.caller import ApiError
from local.command import FILE, INSTANT, command, option
from local.stack import Stack
from local.stores import accounts_of, cache_of, lake_of, over_accounts
from rules.days import stamp
from rules.engagement.account_state import Amnesties, Amnesty

SHOWN_MAX = 20  # users, in a summary
ZONES = "only for users of these zones, separated by commas; a zone that has two names is named by both"
number_argument = click.argument("number", type=int)
users_option = option("--users", type=FILE, help="only for these users, one a line", show_default="all")
dry_option = option("--dry-run", is_flag=True, help="only say who would gain what")


@dataclass(slots=True)
class AmnestySummary:
    """What became of all users."""

    looked_at: int = 0
    unknown: list[str] = field(default_factory=list)  # users without an account
    changed: list[AmnestyResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # accounts not read or not written, with the reason

    def lines(self, *, is_dry: bool) -> Iterator[str]:
        """Yield the summary as lines for the operator. Those who gain most come first."""
        would = "would be " if is_dry else ""
        freezes = sum(result.freezes_returned for result in self.changed)
        restored = sum(result.streak_after > result.streak_before for result in self.changed)
        yield f"{self.looked_at} users looked at; {len(self.changed)} {would}changed"
        yield f"streaks that are longer now: {restored}; freezes given back: {freezes}"
        by_gain = sorted(
            self.changed, key=lambda result: (result.streak_before - result.streak_after, result.user_id)
        )
        for result in by_gain[:SHOWN_MAX]:
            streaks = f"streak {result.streak_before} -> {result.streak_after}"
            yield f"  {result.user_id}: {streaks}, freezes {result.freezes_returned:+d}"
        if len(by_gain) > SHOWN_MAX:
            yield f"  and {len(by_gain) - SHOWN_MAX} more"
        if self.unknown:
            yield f"{len(self.unknown)} users are unknown here: {', '.join(self.unknown[:SHOWN_MAX])}"
        yield from (f"  left as it is: {account}" for account in self.failed)


@command(
    "amnesty declare --from 2026-03-01T22:10:00Z --to 2026-03-02T03:00:00Z --reason 'no network' --dry-run"
)
@option("--from", "since", type=INSTANT, required=True, help="its begin, such as 2026-03-01T22:10:00Z")
@option("--to", "until", type=INSTANT, required=True, help="its end")
@option("--zones", default="", help=ZONES, show_default="all")
@option("--reason", required=True, help="why, for those who ask later")
@option("--author", default=getpass.getuser, help="who says so", show_default="your user name")
@users_option
@dry_option
def declare(  # noqa: PLR0917
    stack: Stack,
    since: datetime,
    until: datetime,
    zones: str,
    reason: str,
    author: str,
    users: Path | None,
    dry_run: bool,
) -> None:
    """Say that the dates which an outage touched are no misses; then apply it."""
    store, now = _store(stack), datetime.now(UTC)
    body = {
        "from": stamp(since),
        "to": stamp(until),
        "zones": [zone.strip() for zone in zones.split(",") if zone.strip()],
        "listed": users is not None,
        "reason": reason,
    }
    try:
        amnesty = amnesty_of_body(body, author, now)
    except ApiError as refused:
        raise RuntimeError(str(refused)) from None
    if not dry_run:
        amnesty = store.declare(amnesty, now)
        print(f"amnesty {amnesty.number} is declared; every function knows it within a minute")
    _carry_out(stack, amnesty, users, is_dry=dry_run)


@command("amnesty apply 3")
@number_argument
@users_option
@dry_option
def apply_command(stack: Stack, number: int, users: Path | None, dry_run: bool) -> None:
    """Give an amnesty to all whom it concerns. Run again, it writes nothing.

    NUMBER is as `amnesty list` shows it.
    """
    _carry_out(stack, _numbered(stack, number), users, is_dry=dry_run)


@command("amnesty revoke 3 --dry-run")
@number_argument
@users_option
@dry_option
def revoke(stack: Stack, number: int, users: Path | None, dry_run: bool) -> None:
    """Take an amnesty back from all who have it."""
    amnesty, now = _numbered(stack, number), datetime.now(UTC)
    if not amnesty.revoked_at:
        amnesty = replace(amnesty, revoked_at=stamp(now)) if dry_run else _store(stack).revoke(number, now)
    _carry_out(stack, amnesty, users, is_dry=dry_run)


@command("amnesty list")
def list_command(stack: Stack) -> Any:
    """Print all amnesties."""
    return list(map(amnesty_view, _store(stack).look().known))


def _store(stack: Stack) -> AmnestyStore:
    return AmnestyStore(stack.client("dynamodb"), stack.tables["RuleBooks"])


def _numbered(stack: Stack, number: int) -> Amnesty:
    try:
        return _store(stack).get(number)
    except NoAmnesty:
        raise RuntimeError(f"there is no amnesty {number}") from None


def _carry_out(stack: Stack, amnesty: Amnesty, file: Path | None, *, is_dry: bool) -> None:
    if file is None and amnesty.is_listed:
        raise RuntimeError(f"amnesty {amnesty.number} is for listed users: say --users FILE")
    users = users_in(file) if file else users_concerned(lake_of(stack), amnesty)
    applier = AmnestyApplier(accounts_of(stack), cache_of(stack))
    amnesties = _with(_store(stack).look(), amnesty)
    summary = apply(applier, users, amnesties, datetime.now(UTC), is_dry=is_dry)
    print("\n".join(summary.lines(is_dry=is_dry)))
    if summary.failed:
        raise RuntimeError(f"{len(summary.failed)} accounts were left as they are: run this again")


def users_in(path: Path) -> list[str]:
    """Return the users that a file names, one a line. Raises RuntimeError for a file that names nobody."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuntimeError(f"{path}: {error}") from None
    users = {line.strip() for line in text.splitlines() if line.strip()}
    if not users:
        raise RuntimeError(f"{path} names nobody")
    return sorted(users)


def _with(amnesties: Amnesties, amnesty: Amnesty) -> Amnesties:
    """Return all amnesties with one that is to be applied; in a dry run nobody has declared that yet."""
    others = [other for other in amnesties.known if other.number != amnesty.number]
    return Amnesties((*others, amnesty), frozenset({amnesty.number}))


def apply(
    applier: AmnestyApplier,
    users: Iterable[str],
    amnesties: Amnesties,
    now: datetime,
    *,
    is_dry: bool = False,
) -> AmnestySummary:
    """Apply an amnesty to users, some at a time. An account that cannot be read stops no other."""
    summary = AmnestySummary()
    for result in over_accounts(users, lambda user: applier.apply(user, amnesties, now, is_dry=is_dry)):
        summary.looked_at += 1
        if isinstance(result, str):
            summary.failed.append(result)
        elif not result.is_known:
            summary.unknown.append(result.user_id)
        elif result.is_changed:
            summary.changed.append(result)
    return summary
