"""Commands on points (docs/rules.md, rules 2 and 6): how each writes its ledger entry, once for a key.

`Commands` is how all of them write. `attempt` writes one command's entry in a transaction, `retry` repeats
that while other writers are in the way, and `once` also sees to it that a key writes once. The commands
themselves return a `Command` for an account as it was read. Those that redeem points, take a freeze, or
reverse either are in SpendingCommands below; others are in redemptions.py, holds.py and clawbacks.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from adapters.book_store import BookStore
from adapters.engagement.account_store import (
    ATTEMPTS_MAX,
    FIRST_OF_ALSO,
    AccountContended,
    AccountStore,
    ProjectionMoved,
)
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, claim_request
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler, clock_of, is_due
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from ingest.engagement.history import ENTRY, entry_view
from ingest.engagement.points.balance import POINTS_MAX
from ingest.engagement.preferences import Change, change_profile
from ingest.web.caller import ApiError
from ingest.web.json_schema import DATE, KEY, closed_object, flag, list_of, open_object, text, whole
from rules.book.book import Books, FreezeRules
from rules.book.daily import REPAIRED_MAX, RepairRules
from rules.book.rewards import FREEZE_REWARD
from rules.days import MICROSECOND, stamp, unstamp
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Day, Decision, Profile, date_at
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, InsufficientBalance, check_covered
from rules.engagement.lots import held_points, holds_without
from rules.engagement.repairs import (
    NotRepairable,
    RepairOffer,
    RepairRefusal,
    is_repair,
    newest_repair,
    offered_repair,
    repair_drafts,
)
from rules.engagement.spending import (
    FreezesHeldMax,
    NotReversible,
    check_freeze,
    check_reversible,
    reversal_of,
    spendable,
)

# Beginnings of the keys that claims have. The first one stands before each command's key, so it is never the
# key of an event: no sender's key has this character.
COMMAND = "\x1f"
REDEEM = "redeem:"  # then the idempotency key of a redemption
FREE_FREEZE = "free-freeze:"  # then the month and number of a free freeze
FREEZE = closed_object(
    {
        "idempotency_key?": KEY,
        "granted_on?": text(
            "admins: the first date that the freeze can cover (default: the user's today)", pattern=DATE
        ),
    }
)
REPAIR = closed_object(
    {
        "idempotency_key?": KEY,
        "price_points?": whole(
            "the price that the user was shown: at another one nothing is repaired", 1, POINTS_MAX
        ),
    },
    example={"price_points": 200, "idempotency_key": "3f1c"},
)
REPAIR_RESULT = open_object(
    {
        "dates": list_of(text(format="date"), description="the repaired dates, ascending"),
        "price_points": whole("of all of them", 1),
        "entries": list_of(ENTRY, description="of the ledger, one for each date"),
        "duplicate?": flag("the run was repaired before"),
    }
)
CLAIM_INDEX = FIRST_OF_ALSO  # of the claim of the command's key, in HeadMoved.failed


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The entry that a command wrote."""

    entry: Entry
    duplicate: bool = False  # an earlier attempt with the same key wrote it


class RepairedBefore(Exception):
    """The run that has just broken is repaired."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place  # of the last entry of the repair


@dataclass(frozen=True, slots=True)
class Command:
    """What a command writes: one entry, and what belongs to it."""

    draft: Draft
    free_freeze: str | None = None  # the claim's key of the free freeze that the command takes, if any
    hold_id: str | None = None  # the hold that the command captures, if any
    entries_before: tuple[Draft, ...] = ()  # entries that belong to the command and come before its own
    # The days that the entries change, as they were read
    days: Mapping[date, Day | None] = field(default_factory=dict)
    # Returns further actions of the same transaction, given the entry with its place
    further_actions: Callable[[Entry], Sequence[dict[str, Any]]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Commands:
    """Writes what commands make of accounts; read once, retry, attempt in this order."""

    accounts: AccountStore
    claims: ClaimStore
    claims_table: str  # a command's transaction puts the claim of its key there
    cache: EngagementCache
    settler: Settler  # writes the points that have expired, before a command writes

    def once(
        self,
        user_id: str,
        key: str | None,
        body: str,
        now: datetime,
        command_of: Callable[[Account], Command],
    ) -> CommandResult:
        """Apply a command at most once for a key: its transaction also puts the claim of the key.

        Without a key, each call is a command of its own. body: what the caller asks for, as a text; the same
        key with another body is a conflict (409). command_of: makes the command for an account as it was
        read.
        """
        if not key:
            return self.retry(user_id, now, lambda account: self.attempt(account, now, command_of))
        if earlier := self._earlier_result(user_id, key, body, now):
            return earlier

        def attempt_with_key(account: Account) -> CommandResult:
            try:
                return self.attempt(account, now, command_of, claim=(key, body))
            except HeadMoved as error:
                is_claimed = CLAIM_INDEX in error.failed
                if is_claimed and (earlier := self._earlier_result(user_id, key, body, now)):
                    return earlier
                raise

        try:
            return self.retry(user_id, now, attempt_with_key)
        except ApiError:
            # Another attempt with the same key may have succeeded meanwhile, and so caused this refusal: it
            # took the last item or the points. Then its result is the answer.
            if earlier := self._earlier_result(user_id, key, body, now):
                return earlier
            raise

    def _earlier_result(self, user_id: str, key: str, body: str, now: datetime) -> CommandResult | None:
        """Return what a command with this key has written; raises 409 conflict if it had another body."""
        claim = self.claims_of(user_id, [key], now).get(key)
        if claim is None:
            return None
        if claim.body_hash != body:
            raise ApiError(409, "conflict", "idempotency_key was used for another body")
        entry = self.accounts.ledger.get(user_id, claim.target)
        return CommandResult(entry, duplicate=True) if entry else None

    def claims_of(self, user_id: str, keys: Iterable[str], now: datetime) -> dict[str, IdempotencyClaim]:
        """Return the claims of commands, by key; a key that nobody has used has none."""
        claims = self.claims.get([(user_id, COMMAND + key) for key in keys], now)
        return {key.removeprefix(COMMAND): claim for (_, key), claim in claims.items()}

    def retry(
        self, user_id: str, now: datetime, attempt: Callable[[Account], CommandResult]
    ) -> CommandResult:
        """Attempt a command until no other writer is in the way; raises AccountContended.

        An attempt trusts the profile, because the transaction fails if the profile is out of date. If an
        attempt fails and the profile has not changed, a writer died halfway: then `settle` reads the ledger.
        """
        failed_version = -1
        for _ in pauses(ATTEMPTS_MAX):
            account = Account(self.accounts.profile(user_id), {})
            if is_due(account.profile, now):
                account = Account(self.settler.settle(user_id, now), {})
            if account.profile.version == failed_version:  # a writer died halfway
                account = Account(self.settler.settle(user_id, now), {})
            failed_version = account.profile.version
            try:
                return attempt(account)
            except (HeadMoved, ProjectionMoved):
                continue
            except InsufficientBalance:
                pass
            # The profile may lag behind the ledger: refuse only if the ledger itself says so.
            try:
                return attempt(Account(self.settler.settle(user_id, now), {}))
            except (HeadMoved, ProjectionMoved):
                continue
            except InsufficientBalance as error:
                raise insufficient_balance(error) from None
        raise AccountContended(user_id)

    def attempt(
        self,
        account: Account,
        now: datetime,
        command_of: Callable[[Account], Command],
        claim: tuple[str, str] | None = None,
    ) -> CommandResult:
        """Write what a command makes of an account as it was read.

        claim: (key, body) of the command's claim; None: it has no key. Raises HeadMoved, ProjectionMoved or
        InsufficientBalance.
        """
        command = command_of(account)
        drafts = [*command.entries_before, command.draft]
        account = replace(account, days={**account.days, **command.days})
        decision = self.accounts.decision_of(account, lambda each: decide(each, (), now, drafts))
        decision = _respect_holds(decision, command, clock_of(account.profile, now))
        entry = next(entry for entry in decision.entries if entry.draft is command.draft)
        claims = [claim] if claim else []
        if command.free_freeze:
            claims.append((command.free_freeze, "taken"))
        actions = [self._claim_action(key, body, entry, now) for key, body in claims]
        actions += command.further_actions(entry)
        self.accounts.commit_at_once(decision, actions)
        self.cache.write_through([decision.profile], decision.days.values())
        return CommandResult(entry)

    def change(self, user_id: str, now: datetime, change: Change) -> Profile:
        """Write the points that have expired, then change settings of the account; returns the profile.

        Raises AccountContended, and 409 where `change` raises InsufficientBalance.
        """

        def read() -> Account:
            return Account(self.settler.settle(user_id, now), {})

        try:
            return change_profile(self.accounts, self.cache, read, now, change)
        except InsufficientBalance as error:
            raise insufficient_balance(error) from None

    def _claim_action(self, key: str, body: str, entry: Entry, now: datetime) -> dict[str, Any]:
        claim = IdempotencyClaim(entry.account_id, COMMAND + key, body, entry.created_at, entry.created_at)
        return {"Put": claim_request(self.claims_table, claim, now)}


@dataclass(frozen=True, slots=True)
class Repaired:
    """A repair."""

    entries: Sequence[Entry]  # one for each date, oldest first
    duplicate: bool = False  # an earlier request has bought it


def repair_result_view(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return a repair as the API shows it. entries: see Repaired."""
    return {
        "dates": [entry.draft.freeze_date for entry in entries],
        "price_points": -sum(entry.draft.points for entry in entries),
        "entries": list(map(entry_view, entries)),
    }


def _respect_holds(decision: Decision, command: Command, now: datetime) -> Decision:
    """Return a command's decision, with its hold ended.

    Raises InsufficientBalance if the command spends points that a hold reserves.
    """
    profile = replace(decision.profile, holds=holds_without(decision.profile.holds, command.hold_id or ""))
    reserved, spent = held_points(profile.holds, now), -command.draft.points
    if command.draft.kind is EntryKind.REDEEM:
        before = profile.balance + spent
        check_covered(spent, spendable(before, reserved, is_capture=bool(command.hold_id)))
    return replace(decision, profile=profile)


def insufficient_balance(error: InsufficientBalance) -> ApiError:
    """Return the answer to a command that the balance does not cover."""
    details = {"balance": error.balance, "points": error.wanted}
    return ApiError(409, "insufficient_balance", str(error), details)


def check_review(profile: Profile) -> None:
    """Raise 409 while an admin has yet to look at the account (rule 8)."""
    if profile.tz_review:
        reason = "the account is under review: its points stay, and can be spent once an admin releases it"
        raise ApiError(409, "under_review", reason, {"since": profile.review_since})


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

        # The body has no date: the same key with one, as give_freeze takes it, is a conflict.
        return self.commands.once(user_id, key and f"freeze:{key}", str(None), now, command)

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
        """Return the entry of a freeze; raises 409 freezes_held_max."""
        profile, local = account.profile, account.profile.local_date(now)
        if granted_on is None:
            try:
                check_freeze(profile.streak, profile.cover, local, self._terms(now))
            except FreezesHeldMax as refused:
                raise ApiError(409, "freezes_held_max", str(refused)) from None
        return Draft(
            EntryKind.REDEEM,
            -price,
            reward_id=FREEZE_REWARD,
            freeze=FreezeNote.GRANTED,
            freeze_date=(granted_on or local).isoformat(),
        )

    def repair(self, user_id: str, key: str | None, price_shown: int | None, now: datetime) -> Repaired:
        """Repair the run that has just broken: buy a freeze for each date that no freeze covers.

        A second call gives the first answer: also one with another key or none, while that run goes on.
        price_shown: the price that the user has agreed to, if it is known. Raises 409 not_repairable, whose
        details have a RepairRefusal, price_changed, insufficient_balance, under_review, or conflict.
        """

        def command(account: Account) -> Command:
            check_review(account.profile)
            try:
                return self._repair_by(self.books.books(), account.profile, price_shown, now)
            except ApiError:
                # This process may not know the newest version of the book yet: read it, and look again.
                return self._repair_by(self.books.look(), account.profile, price_shown, now)

        try:
            result = self.commands.once(user_id, key and f"repair:{key}", str(price_shown), now, command)
        except RepairedBefore as repaired:
            entry = self.commands.accounts.ledger.get(user_id, repaired.place)
            if entry is None:
                raise AccountContended(user_id) from None
            result = CommandResult(entry, duplicate=True)
        return Repaired(self._entries_of_repair(result.entry), result.duplicate)

    def _repair_by(self, books: Books, profile: Profile, price_shown: int | None, now: datetime) -> Command:
        """Return what repairs a run; raises 409, RepairedBefore and InsufficientBalance."""
        version, today_of_user = books.at(now), date_at(profile, now)
        rules, bought = version.book.repairs, [repair.place for repair in profile.repairs]
        try:
            if bought and not rules.dates_max:
                # Whether a second call is about what was bought, the book of that time says.
                with suppress(NotRepairable):
                    self._offer(profile, books.at(unstamp(max(bought))).book.repairs, today_of_user)
            offer = self._offer(profile, rules, today_of_user)
        except NotRepairable as refused:
            details = {"reason": refused.refusal.value}
            raise ApiError(409, "not_repairable", str(refused), details) from None
        price = offer.price_points
        if price_shown not in (None, price):
            reason = f"the repair costs {price} points now, and not {price_shown}"
            raise ApiError(409, "price_changed", reason, {"price_points": price})
        reserved = held_points(profile.holds, clock_of(profile, now))
        check_covered(price, spendable(profile.balance, reserved, is_capture=False))
        *earlier, draft = repair_drafts(offer, version.number)
        return Command(draft, entries_before=tuple(earlier))

    def _offer(self, profile: Profile, rules: RepairRules, today: date) -> RepairOffer:
        """Return what the user may repair; raises NotRepairable, and RepairedBefore if it was just bought."""
        run = self.commands.accounts.newest_break(profile, rules, today)
        try:
            return offered_repair(run, profile.cover, profile.repairs, rules, today)
        except NotRepairable as refused:
            is_repaired = refused.refusal is RepairRefusal.NOTHING
            if is_repaired and (repaired := newest_repair(profile.repairs, rules, today)):
                raise RepairedBefore(repaired.place) from None
            raise

    def _entries_of_repair(self, last: Entry) -> list[Entry]:
        """Return the entries of a repair, oldest first: one for each date, a microsecond apart."""
        end = unstamp(last.created_at) + MICROSECOND
        since = end - REPAIRED_MAX * MICROSECOND
        page = self.commands.accounts.ledger.page(
            last.account_id, stamp(since), last.created_at, REPAIRED_MAX
        )
        entries = [last]
        for entry in page:
            follows = unstamp(entries[0].created_at) - unstamp(entry.created_at) == MICROSECOND
            if not (follows and is_repair(entry.draft)):
                break
            entries.insert(0, entry)
        return entries

    def _terms(self, now: datetime) -> FreezeRules:
        return self.books.books().at(now).book.freezes

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
            is_freeze = entry.draft.freeze is FreezeNote.GRANTED
            granted = date.fromisoformat(entry.draft.freeze_date or "") if is_freeze else date.max
            actions = further_actions(entry)

            def command(read: Account) -> Command:
                profile = self.commands.accounts.reaching_back(read.profile, granted)
                draft = reversal_of(entry, profile.streak, profile.cover, profile.local_date(now))
                return Command(draft, further_actions=lambda _: actions)

            return self.commands.attempt(account, now, command)

        return self.commands.retry(user_id, now, attempt)

    def _entry_to_reverse(self, user_id: str, created_at: str) -> Entry:
        """Return a redemption that was not reversed yet; raises 404 or 409."""
        entry = self.commands.accounts.ledger.get(user_id, created_at)
        if entry is None:
            raise ApiError(404, "not_found", "there is no such entry")
        try:
            check_reversible(entry)
        except NotReversible as refused:
            if refused.is_reversed:
                raise ApiError(409, "already_reversed", str(refused)) from None
            raise ApiError(409, "not_reversible", str(refused)) from None
        return entry
