"""`streakline amnesty declare | apply | revoke | list`: run again, it writes nothing."""

import getpass
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from adapters.engagement.amnesty import AmnestyApplier, AmnestyResult, AmnestyStore, NoAmnesty
from analytics.amnesty import users_concerned
from ingest.engagement.amnesty import amnesty_of_body, amnesty_view
from ingest.web.caller import ApiError
from local.command import FILE, INSTANT, command, option
from local.stack import Stack
from local.stores import accounts_of, cache_of, lake_of, over_accounts
from rules.days import stamp
from rules.engagement.amnesty import Amnesties, Amnesty

SHOWN_MAX = 20


@dataclass(slots=True)
class Applied:
    """What became of all users. unknown: those who have no account."""

    looked_at: int = 0
    unknown: list[str] = field(default_factory=list)
    changed: list[AmnestyResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def lines(self, *, is_dry: bool) -> Iterator[str]:
        """Yield what is told of it."""
        would = "would be " if is_dry else ""
        freezes = sum(each.freezes for each in self.changed)
        restored = sum(each.after > each.before for each in self.changed)
        yield f"{self.looked_at} users looked at; {len(self.changed)} {would}changed"
        yield f"streaks that are longer now: {restored}; freezes given back: {freezes}"
        most = sorted(self.changed, key=lambda each: (each.before - each.after, each.user_id))
        for each in most[:SHOWN_MAX]:
            yield f"  {each.user_id}: streak {each.before} -> {each.after}, freezes {each.freezes:+d}"
        if len(most) > SHOWN_MAX:
            yield f"  and {len(most) - SHOWN_MAX} more"
        if self.unknown:
            some = ", ".join(self.unknown[:SHOWN_MAX])
            yield f"{len(self.unknown)} users are unknown here: {some}"
        yield from (f"  left as it is: {each}" for each in self.failed)


ZONES = "only for users of these zones, separated by commas; a zone that has two names is named by both"
number_argument = click.argument("number", type=int)
users_option = option("--users", type=FILE, help="only for these users, one a line", show_default="all")
dry_option = option("--dry-run", is_flag=True, help="only say who would gain what")


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
        "zones": [each.strip() for each in zones.split(",") if each.strip()],
        "listed": users is not None,
        "reason": reason,
    }
    try:
        made = amnesty_of_body(body, author, now)
    except ApiError as refused:
        raise RuntimeError(str(refused)) from None
    if not dry_run:
        made = store.declare(made, now)
        print(f"amnesty {made.number} is declared; every function knows it within a minute")
    _carry_out(stack, made, users, is_dry=dry_run)


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
    said, now = _numbered(stack, number), datetime.now(UTC)
    if not said.revoked_at:
        said = replace(said, revoked_at=stamp(now)) if dry_run else _store(stack).revoke(number, now)
    _carry_out(stack, said, users, is_dry=dry_run)


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


def _carry_out(stack: Stack, said: Amnesty, file: Path | None, *, is_dry: bool) -> None:
    """Give or take an amnesty, and print what became of it. Raises RuntimeError if an account is left."""
    users = listed(file) if file else None
    if users is None and said.is_listed:
        raise RuntimeError(f"amnesty {said.number} is for listed users: say --users FILE")
    forgiver = AmnestyApplier(accounts_of(stack), cache_of(stack))
    amnesties = _with(_store(stack).look(), said)
    named = users_concerned(lake_of(stack), said) if users is None else users
    found = apply(forgiver, named, amnesties, datetime.now(UTC), is_dry=is_dry)
    print("\n".join(found.lines(is_dry=is_dry)))
    if found.failed:
        raise RuntimeError(f"{len(found.failed)} accounts were left as they are: run this again")


def listed(path: Path) -> list[str]:
    """Return the users that a file names, one a line. Raises RuntimeError for a file that names nobody."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuntimeError(f"{path}: {error}") from None
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if not found:
        raise RuntimeError(f"{path} names nobody")
    return sorted(set(found))


def _with(known: Amnesties, said: Amnesty) -> Amnesties:
    """Return all amnesties, one of them applied by name; it may be one that nobody has declared yet."""
    others = [each for each in known.known if each.number != said.number]
    return Amnesties((*others, said), frozenset({said.number}))


def apply(
    forgiver: AmnestyApplier,
    users: Iterable[str],
    amnesties: Amnesties,
    now: datetime,
    *,
    is_dry: bool = False,
) -> Applied:
    """Apply an amnesty to users, some at a time. An account that cannot be read stops no other."""
    found = Applied()
    for account in over_accounts(users, lambda user: forgiver.forgive(user, amnesties, now, is_dry=is_dry)):
        found.looked_at += 1
        if isinstance(account, str):
            found.failed.append(account)
        elif not account.is_known:
            found.unknown.append(account.user_id)
        elif account.is_changed:
            found.changed.append(account)
    return found
