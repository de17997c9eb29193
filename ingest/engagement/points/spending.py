"""Commands that redeem points, take a freeze, or reverse either (docs/rules.md, rules 2 and 6).

Rewards of the book are sold in redemptions.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from adapters.book import BookStore
from ingest.engagement.points.commands import (
    FREE_FREEZE,
    REDEEM,
    Command,
    CommandResult,
    Commands,
    check_review,
)
from ingest.web.caller import ApiError
from ingest.web.json_schema import DATE, KEY, closed_object, text
from rules.book.book import FreezeRules
from rules.days import today
from rules.engagement.account_state import Account, Profile
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote
from rules.engagement.streak import revocation_date, shown_streak

FREEZE_REWARD = "streak_freeze"
NO_DATE = str(None)  # the body of a freeze without a date: the same key with a date is a conflict
FREEZE = closed_object(
    {
        "idempotency_key?": KEY,
        "granted_on?": text(
            "admins: the first date that the freeze can cover (default: the user's today)", pattern=DATE
        ),
    }
)


@dataclass(frozen=True, slots=True)
class SpendingCommands:
    """Commands of users and servers: redeem points, take a freeze, and reverse either."""

    commands: Commands
    books: BookStore  # what freezes cost

    def redeem(self, user_id: str, points: int, reward_id: str, key: str, now: datetime) -> CommandResult:
        """Spend any number of points, for callers who may name it.

        Raises 409 insufficient_balance, conflict for a key used with another body, or under_review.
        """
        draft = Draft(EntryKind.REDEEM, -points, reward_id=reward_id)

        def command(account: Account) -> Command:
            check_review(account.profile)
            return Command(draft)

        return self.commands.once(user_id, REDEEM + key, f"{points} {reward_id}", now, command)

    def take_freeze(self, user_id: str, key: str | None, now: datetime) -> CommandResult:
        """Take a freeze: one of the month's free ones, or at its price.

        Raises 409 insufficient_balance, conflict, freezes_held_max, or under_review for one that costs.
        The transaction puts a claim of the free freeze, too. So no month has more of them, however many
        requests come at once.
        """
        terms = self._terms(now)

        def command(account: Account) -> Command:
            keys = [f"{FREE_FREEZE}{now:%Y-%m}:{number}" for number in range(terms.free_a_month)]
            claims = self.commands.claims_of(user_id, keys, now)
            free_key = next((each for each in keys if each not in claims), None)
            price = terms.price(len(claims))
            if price:
                check_review(account.profile)
            return Command(self._freeze(account, None, price, now), free_freeze=free_key)

        return self.commands.once(user_id, key and f"freeze:{key}", NO_DATE, now, command)

    def give_freeze(
        self, user_id: str, key: str | None, granted_on: date | None, now: datetime
    ) -> CommandResult:
        """Give a freeze for nothing, for admins; raises 409 conflict or freezes_held_max.

        granted_on: the first date that the freeze can cover; if it is given, no maximum applies.
        """

        def command(account: Account) -> Command:
            return Command(self._freeze(account, granted_on, 0, now))

        return self.commands.once(user_id, key and f"freeze:{key}", str(granted_on), now, command)

    def _freeze(self, account: Account, granted_on: date | None, price: int, now: datetime) -> Draft:
        local = today(now, account.profile.zone)
        count, most = self._freezes_held(account.profile, local), self._terms(now).held_max
        if granted_on is None and count >= most:
            raise ApiError(409, "freezes_held_max", f"{count} freezes are held, and {most} may be")
        return Draft(
            EntryKind.REDEEM,
            -price,
            reward_id=FREEZE_REWARD,
            freeze=FreezeNote.GRANTED,
            freeze_date=(granted_on or local).isoformat(),
        )

    def _terms(self, now: datetime) -> FreezeRules:
        return self.books.books().at(now).book.freezes

    def _freezes_held(self, profile: Profile, local: date) -> int:
        last = profile.streak.last if profile.streak else local
        return shown_streak(profile.streak, profile.cover, max(local, last)).freezes_available

    def reverse(
        self,
        user_id: str,
        created_at: str,
        now: datetime,
        further_actions: Callable[[Entry], Sequence[dict[str, Any]]] = lambda _: (),
    ) -> CommandResult:
        """Undo a redemption; raises 404, 409 not_reversible, 409 already_reversed.

        If it bought a freeze, the freeze is revoked. A freeze that is spent already becomes a debt. A revoked
        free freeze does not come back into the month's allowance. further_actions: returns, for the entry,
        what is to be written in the same transaction. An exception that it raises ends the command.
        """

        def attempt(account: Account) -> CommandResult:
            entry = self._entry_to_reverse(user_id, created_at)
            if entry.draft.freeze is FreezeNote.GRANTED and entry.draft.freeze_date:
                granted = date.fromisoformat(entry.draft.freeze_date)
                account = self.commands.accounts.with_protection_since(account, granted)
            actions = further_actions(entry)

            def command(read: Account) -> Command:
                draft = self._reversal(entry, now, read)
                return Command(draft, reversed_entry=entry, further_actions=lambda _: actions)

            return self.commands.attempt(account, now, command)

        return self.commands.retry(user_id, now, attempt)

    def _entry_to_reverse(self, user_id: str, created_at: str) -> Entry:
        entry = self.commands.accounts.ledger.get(user_id, created_at)
        if entry is None:
            raise ApiError(404, "not_found", "there is no such entry")
        if entry.draft.kind is not EntryKind.REDEEM:
            raise ApiError(409, "not_reversible", f"an entry of kind {entry.draft.kind} is not a redemption")
        if entry.reversed_by:
            raise ApiError(409, "already_reversed", "the redemption was reversed before")
        return entry

    def _reversal(self, entry: Entry, now: datetime, account: Account) -> Draft:
        draft = Draft(
            EntryKind.REVERSE,
            -entry.draft.points,
            reverses=entry.created_at,
            reward_id=entry.draft.reward_id,
            held_at=entry.draft.held_at,
            brand=entry.draft.brand,
        )
        if entry.draft.freeze is FreezeNote.GRANTED and entry.draft.freeze_date:
            profile, granted = account.profile, date.fromisoformat(entry.draft.freeze_date)
            revoked_on = revocation_date(profile.streak, profile.cover, granted, today(now, profile.zone))
            return replace(draft, freeze=FreezeNote.REVOKED, freeze_date=revoked_on.isoformat())
        return draft
