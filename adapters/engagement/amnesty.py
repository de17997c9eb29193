"""Amnesties, in a partition of the table RuleBooks (`book` is `amnesties`, and `version` the number), and how
they are applied to one account after the other.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Refresh, query_all
from rules.days import stamp, unstamp
from rules.engagement.account import decide
from rules.engagement.account_state import Decision, Profile, date_at
from rules.engagement.amnesty import NO_AMNESTIES, Amnesties, Amnesty
from rules.engagement.ledger import FreezeNote
from rules.engagement.streak import lapse_date, shown_streak

FRESH_SECONDS = 30
PARTITION = "amnesties"


class DeclarationConflict(Exception):
    """Somebody else has declared an amnesty since the newest one was read: look again."""


class NoAmnesty(Exception):
    """There is no amnesty of this number."""


class AmnestyStore:
    """All amnesties, as one process sees them."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._known, self._refresh = NO_AMNESTIES, Refresh()

    def known(self) -> Amnesties:
        """Return what was declared or revoked half a minute ago, and maybe newer ones.

        Where the table cannot be read, a process goes on with what it knows.
        """
        self._refresh.keep(self.look)
        return self._known

    def look(self) -> Amnesties:
        """Return all amnesties that are declared by now, by number."""
        asked_at = time.monotonic()
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="book = :book",
            ExpressionAttributeValues=encode_item({":book": PARTITION}),
            ConsistentRead=True,
        )
        self._known = Amnesties(tuple(_amnesty(decode_item(each)) for each in found))
        self._refresh.renew(asked_at, FRESH_SECONDS)
        return self._known

    def numbered(self, number: int) -> Amnesty:
        """Return an amnesty as it is now; raises NoAmnesty."""
        for each in self.look().known:
            if each.number == number:
                return each
        raise NoAmnesty(number)

    def declare(self, amnesty: Amnesty, now: datetime) -> Amnesty:
        """Store an amnesty under the number after the newest one. Raises DeclarationConflict."""
        number = max((each.number for each in self.look().known), default=0) + 1
        declared = replace(amnesty, number=number, declared_at=stamp(now))
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=encode_item(_attributes(declared)),
                ConditionExpression="attribute_not_exists(book)",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise DeclarationConflict(number) from None
        self._refresh.end()
        return declared

    def revoke(self, number: int, now: datetime) -> Amnesty:
        """Revoke an amnesty; one that is revoked stays as it is. Raises NoAmnesty."""
        self.numbered(number)
        self._dynamodb.update_item(
            TableName=self._table,
            Key=encode_item({"book": PARTITION, "version": number}),
            UpdateExpression="SET revoked_at = if_not_exists(revoked_at, :now)",
            ExpressionAttributeValues=encode_item({":now": stamp(now)}),
        )
        return self.numbered(number)


def _attributes(amnesty: Amnesty) -> dict[str, Any]:
    return {
        "book": PARTITION,
        "version": amnesty.number,
        "since": stamp(amnesty.since),
        "until": stamp(amnesty.until),
        "zones": sorted(amnesty.zones) or None,
        "is_listed": amnesty.is_listed or None,
        "reason": amnesty.reason,
        "author": amnesty.author,
        "declared_at": amnesty.declared_at,
    }


def _amnesty(stored: Mapping[str, Any]) -> Amnesty:
    return Amnesty(
        stored["version"],
        unstamp(stored["since"]),
        unstamp(stored["until"]),
        frozenset(stored.get("zones") or ()),
        bool(stored.get("is_listed")),
        stored["reason"],
        stored["author"],
        stored["declared_at"],
        stored.get("revoked_at") or "",
    )


@dataclass(frozen=True, slots=True)
class AmnestyResult:
    """What became of an account."""

    user_id: str
    is_changed: bool
    before: int = 0  # before, after: the streak that shows
    after: int = 0
    freezes: int = 0  # given back; below 0: used
    is_known: bool = True  # False for somebody without an account


@dataclass(frozen=True, slots=True)
class AmnestyApplier:
    """Applies amnesties to accounts, and takes back those that were revoked."""

    accounts: AccountStore
    cache: EngagementCache

    def forgive(
        self, user_id: str, amnesties: Amnesties, now: datetime, *, is_dry: bool = False
    ) -> AmnestyResult:
        """Give an account what the named ones of these amnesties come to; is_dry: only say what that is.

        Where nothing comes of it, nothing is written. Raises AccountContended.
        """
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.load(user_id)[0]
            decision = self.accounts.decision_of(account, lambda each: decide(each, (), now), amnesties)
            result = _result_of(decision, now)
            if is_dry or not result.is_changed:
                return result
            try:
                self.accounts.commit(decision)
            except (HeadMoved, ProjectionMoved):
                continue
            self.cache.write_through([decision.profile], decision.days.values())
            return result
        raise AccountContended(user_id)


def _result_of(decision: Decision, now: datetime) -> AmnestyResult:
    before, after = decision.before.profile, decision.profile
    notes = [entry.draft.freeze for entry in decision.entries]
    freezes = notes.count(FreezeNote.REFUNDED) - notes.count(FreezeNote.SPENT)
    shown = _shown_length(before, now), _shown_length(after, now)
    return AmnestyResult(
        after.user_id, _is_material(decision, now), *shown, freezes, is_known=before.version > 0
    )


def _is_material(decision: Decision, now: datetime) -> bool:
    """Whether an account is another one after a decision: its streak, now or when it lapses, or its ledger.

    What is revoked is taken off an account in any case.
    """
    before, after = decision.before.profile, decision.profile
    kept = {number for number, _ in after.amnesties}
    if decision.entries or decision.days or any(number not in kept for number, _ in before.amnesties):
        return True
    return _outcome(before, now) != _outcome(after, now)


def _outcome(profile: Profile, now: datetime) -> tuple[object, ...]:
    if profile.streak is None:
        return ()
    shown = replace(shown_streak(profile.streak, profile.cover, date_at(profile, now)), spent=())
    return shown, profile.streak, lapse_date(profile.streak, profile.cover)


def _shown_length(profile: Profile, now: datetime) -> int:
    return shown_streak(profile.streak, profile.cover, date_at(profile, now)).current
