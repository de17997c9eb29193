"""Amnesties (docs/rules.md, rule 17) in the table RuleBooks, and how they are applied to accounts.

They have a partition of their own: `book` is `amnesties`, and `version` is the amnesty's number.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Refresh, query_all, write_if
from rules.days import stamp, unstamp
from rules.engagement.account import decide
from rules.engagement.account_state import NO_AMNESTIES, Amnesties, Amnesty, Decision, date_at
from rules.engagement.ledger import FreezeNote
from rules.engagement.streak import shown_streak

FRESH_SECONDS = 30  # a process uses the amnesties that it has read for so long
PARTITION = "amnesties"


class DeclarationConflict(Exception):
    """Somebody else has declared an amnesty since the newest one was read: look again."""


class NoAmnesty(Exception):
    """There is no amnesty of this number."""


class AmnestyStore:
    """All amnesties, as one process sees them."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._amnesties, self._refresh = NO_AMNESTIES, Refresh(FRESH_SECONDS)

    def recent(self) -> Amnesties:
        """Return all amnesties, half a minute old at most, unless the table is away."""
        self._refresh.renew_if_over(self.look)
        return self._amnesties

    def look(self) -> Amnesties:
        """Read all amnesties anew, and return them by number; strongly consistent."""
        asked_at = time.monotonic()
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="book = :book",
            ExpressionAttributeValues=encode_item({":book": PARTITION}),
            ConsistentRead=True,
        )
        self._amnesties = Amnesties(tuple(_amnesty(decode_item(item)) for item in items))
        self._refresh.renew(asked_at)
        return self._amnesties

    def get(self, number: int) -> Amnesty:
        """Return an amnesty as it is now; raises NoAmnesty."""
        for amnesty in self.look().known:
            if amnesty.number == number:
                return amnesty
        raise NoAmnesty(number)

    def declare(self, amnesty: Amnesty, now: datetime) -> Amnesty:
        """Store an amnesty under the number after the newest one. Raises DeclarationConflict."""
        number = max((earlier.number for earlier in self.look().known), default=0) + 1
        declared = replace(amnesty, number=number, declared_at=stamp(now))
        item, new = encode_item(_attributes(declared)), "attribute_not_exists(book)"
        if not write_if(self._dynamodb.put_item, TableName=self._table, Item=item, ConditionExpression=new):
            raise DeclarationConflict(number)
        self._refresh.end()
        return declared

    def revoke(self, number: int, now: datetime) -> Amnesty:
        """Revoke an amnesty, and return it. One that is revoked already does not change. Raises NoAmnesty."""
        self.get(number)
        self._dynamodb.update_item(
            TableName=self._table,
            Key=encode_item({"book": PARTITION, "version": number}),
            UpdateExpression="SET revoked_at = if_not_exists(revoked_at, :now)",
            ExpressionAttributeValues=encode_item({":now": stamp(now)}),
        )
        return self.get(number)


@dataclass(frozen=True, slots=True)
class AmnestyResult:
    """The result of applying amnesties to an account."""

    user_id: str
    is_changed: bool
    streak_before: int  # the length of the streak as it shows before the amnesty
    streak_after: int  # the same after it
    freezes_returned: int  # to the account; below 0: how many more it uses
    is_known: bool  # False for a user without an account


@dataclass(frozen=True, slots=True)
class AmnestyApplier:
    """Applies amnesties to accounts, and takes revoked ones off them."""

    accounts: AccountStore
    cache: EngagementCache

    def apply(
        self, user_id: str, amnesties: Amnesties, now: datetime, *, is_dry: bool = False
    ) -> AmnestyResult:
        """Apply amnesties to an account, all dates of those in `amnesties.named`. is_dry: write nothing.

        An account that does not change materially is not written. Raises AccountContended.
        """
        # Over no events, a decision applies the amnesties, and the entries of a writer that died.
        apply_amnesties = partial(decide, events=(), now=now)
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.load(user_id).account
            decision = self.accounts.decision_of(account, apply_amnesties, amnesties)
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
    return AmnestyResult(
        after.user_id,
        is_changed=_is_material(decision),
        streak_before=shown_streak(before.streak, before.cover, date_at(before, now)).current,
        streak_after=shown_streak(after.streak, after.cover, date_at(after, now)).current,
        freezes_returned=notes.count(FreezeNote.REFUNDED) - notes.count(FreezeNote.SPENT),
        is_known=before.version > 0,
    )


def _is_material(decision: Decision) -> bool:
    """Whether a decision changes an account: its days, its ledger, or which dates amnesties make neutral.

    Neutral dates may change no daily streak, and yet a streak by week or month, and what is told of a date.
    """
    before = decision.before
    is_known = before.profile.version > 0 or bool(before.pending)
    return is_known and bool(decision.entries or decision.days)


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


def _amnesty(attributes: Mapping[str, Any]) -> Amnesty:
    return Amnesty(
        number=attributes["version"],
        since=unstamp(attributes["since"]),
        until=unstamp(attributes["until"]),
        zones=frozenset(attributes.get("zones") or ()),
        is_listed=bool(attributes.get("is_listed")),
        reason=attributes["reason"],
        author=attributes["author"],
        declared_at=attributes["declared_at"],
        revoked_at=attributes.get("revoked_at") or "",
    )
