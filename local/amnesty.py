"""`streakline amnesty declare | apply | revoke | list`: run again, it writes nothing."""

import argparse
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from adapters.engagement.account_store import AccountContended
from adapters.engagement.amnesty import AmnestyApplier, AmnestyResult, AmnestyStore, NoAmnesty
from adapters.platform.objects import S3Objects
from adapters.platform.tables import chunks
from analytics.amnesty import users_concerned
from ingest.engagement.amnesty import amnesty_of_body, amnesty_view
from ingest.web.caller import ApiError
from local.stack import Stack, accounts_of, cache_of
from rules.days import stamp
from rules.engagement.account_state import Amnesties, Amnesty

READERS = 8
SHOWN_MAX = 20
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


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


def run(arguments: argparse.Namespace, stack: Stack) -> None:
    """Do what is asked."""
    store, now = AmnestyStore(stack.client("dynamodb"), stack.tables["RuleBooks"]), datetime.now(UTC)
    if arguments.action == "list":
        print(json.dumps(list(map(amnesty_view, store.look().known)), indent=2))
        return
    said = _said(arguments, store, now)
    users = listed(arguments.users) if arguments.users else None
    if users is None and said.is_listed:
        raise RuntimeError(f"amnesty {said.number} is for listed users: say --users FILE")
    lake = S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])
    forgiver = AmnestyApplier(accounts_of(stack), cache_of(stack))
    amnesties = _with(store.look(), said)
    named = users_concerned(lake, said) if users is None else users
    found = apply(forgiver, named, amnesties, now, is_dry=arguments.dry_run)
    print("\n".join(found.lines(is_dry=arguments.dry_run)))
    if found.failed:
        raise RuntimeError(f"{len(found.failed)} accounts were left as they are: run this again")


def _said(arguments: argparse.Namespace, store: AmnestyStore, now: datetime) -> Amnesty:
    """Return the amnesty that is asked for; declares or revokes it, if nothing is only tried."""
    if arguments.action == "declare":
        made = _declared(arguments, now)
        if not arguments.dry_run:
            made = store.declare(made, now)
            print(f"amnesty {made.number} is declared; every function knows it within a minute")
        return made
    try:
        said = store.numbered(arguments.number)
    except NoAmnesty:
        raise RuntimeError(f"there is no amnesty {arguments.number}") from None
    if arguments.action == "apply" or said.revoked_at:
        return said
    return replace(said, revoked_at=stamp(now)) if arguments.dry_run else store.revoke(said.number, now)


def _declared(arguments: argparse.Namespace, now: datetime) -> Amnesty:
    body = {
        "from": stamp(arguments.since),
        "to": stamp(arguments.until),
        "zones": [each.strip() for each in arguments.zones.split(",") if each.strip()],
        "listed": arguments.users is not None,
        "reason": arguments.reason,
    }
    try:
        return amnesty_of_body(body, arguments.author, now)
    except ApiError as refused:
        raise RuntimeError(str(refused)) from None


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

    def one(user: str) -> AmnestyResult | str:
        try:
            return forgiver.forgive(user, amnesties, now, is_dry=is_dry)
        except (AccountContended, *UNREADABLE) as error:
            return f"{user}: {type(error).__name__}: {error}"

    found = Applied()
    with ThreadPoolExecutor(READERS) as pool:
        for some in chunks(users, READERS * 8):
            for each in pool.map(one, some):
                found.looked_at += 1
                if isinstance(each, str):
                    found.failed.append(each)
                elif not each.is_known:
                    found.unknown.append(each.user_id)
                elif each.is_changed:
                    found.changed.append(each)
    return found
