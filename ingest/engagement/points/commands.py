"""Commands on points (rule 6): redeem, reverse, freeze, claw back.

A command writes its ledger entry once for a key, whoever else writes to the account.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from adapters.book import BookStore
from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, put_unclaimed
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.engagement.points import Settler, clock_of, is_due
from adapters.platform.aws import pauses
from ingest.engagement.preferences import Change, change_profile
from ingest.web.caller import ApiError
from rules.book.book import FreezeRules
from rules.days import DAY, is_stamp, stamp, today
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Day, Decision, Profile
from rules.engagement.earnings import instant_of, week_of
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, InsufficientBalance
from rules.engagement.lots import held_points, holds_without
from rules.engagement.points import clawback, reversed_events
from rules.engagement.streak import return_date, shown_streak

# No sender's key has this letter. So an event whose key is `redeem:abc` is no redemption's.
COMMAND = "\x1f"
CLAIM_INDEX = 1  # the transaction's further actions are the profile (0) and the claim (1)
FREEZE_REWARD = "streak_freeze"
REDEEM = "redeem:"  # before a redemption's key, in its claim
# An entry is later than its event, and an event counts for a date at most two away from its instant (rule 8).
APART_MAX = 2 * DAY


# What a command on points is, and what it comes to (rule 6).


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The entry that a command wrote."""

    entry: Entry
    duplicate: bool = False  # an earlier attempt with the same key wrote it


@dataclass(frozen=True, slots=True)
class Command:
    """The entry that a command writes."""

    draft: Draft
    place: str | None = None  # of the month's free freezes, the one that it takes
    ends: str | None = None  # the id of the hold that it captures
    before: tuple[Draft, ...] = ()  # entries that belong to it, and come first
    undoes: Entry | None = None  # the entry that it reverses
    # Those that its entries change, as they were read
    days: Mapping[date, Day | None] = field(default_factory=dict)
    # Returns the further actions of its transaction, once the entry has its place
    also: Callable[[Entry], Sequence[dict[str, Any]]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Commands:
    """Writes what commands make of accounts."""

    accounts: AccountStore
    claims: ClaimStore
    claims_table: str  # a command's transaction puts the claim of its key there
    cache: EngagementCache
    settler: Settler  # what has expired is written before what a command writes

    def once(
        self, user_id: str, key: str | None, body: str, now: datetime, make: Callable[[Account], Command]
    ) -> CommandResult:
        """Apply a command at most once for a key: its transaction also puts the claim of the key.

        Without a key, each call is a command of its own.
        """

        def held() -> CommandResult | None:
            return self._held(user_id, key, body, now) if key else None

        if earlier := held():
            return earlier

        def attempt(account: Account) -> CommandResult:
            try:
                return self.attempt(account, now, make, claim=(key, body) if key else None)
            except HeadMoved as error:
                if CLAIM_INDEX in error.failed and (earlier := held()):
                    return earlier
                raise

        try:
            return self.retry(user_id, now, attempt)
        except ApiError:
            # An attempt with the same key may have taken, at the same time, what this one found gone.
            if earlier := held():
                return earlier
            raise

    def _held(self, user_id: str, key: str, body: str, now: datetime) -> CommandResult | None:
        claim = self.claims_of(user_id, [key], now).get(key)
        if claim is None:
            return None
        if claim.body_hash != body:
            raise ApiError(409, "conflict", "idempotency_key was used for another body")
        entry = self.accounts.ledger.get(user_id, claim.target)
        return CommandResult(entry, duplicate=True) if entry else None

    def claims_of(self, user_id: str, keys: Iterable[str], now: datetime) -> dict[str, IdempotencyClaim]:
        """Return the claims of commands' keys, by key, of those that have one."""
        found = self.claims.get([(user_id, COMMAND + key) for key in keys], now)
        return {key.removeprefix(COMMAND): claim for (_, key), claim in found.items()}

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
            if account.profile.version == failed_version:
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
        make: Callable[[Account], Command],
        claim: tuple[str, str] | None = None,
    ) -> CommandResult:
        """Write what a command makes of an account as it was read.

        claim: of its key, (key, body). Raises HeadMoved, ProjectionMoved or InsufficientBalance.
        """
        command = make(account)
        drafts = [*command.before, command.draft]
        account = replace(account, days={**account.days, **command.days})
        decision = self.accounts.decide(account, lambda each: decide(each, (), now, drafts))
        decision = _respect_holds(decision, command, clock_of(account.profile, now))
        entry = next(each for each in decision.entries if each.draft is command.draft)
        place = command.place and (command.place, "taken")
        claims = [self._claim(each, entry, now) for each in (claim, place) if each]
        self.accounts.commit_at_once(decision, command.undoes, [*claims, *command.also(entry)])
        self.cache.write_through([decision.profile], decision.days.values())
        return CommandResult(entry)

    def change(self, user_id: str, now: datetime, change: Change) -> Profile:
        """Change a profile without an entry, after what has expired; returns it.

        Raises AccountContended, and 409 where `change` raises InsufficientBalance.
        """

        def read() -> Account:
            return Account(self.settler.settle(user_id, now), {})

        try:
            return change_profile(self.accounts, self.cache, read, now, change)
        except InsufficientBalance as error:
            raise insufficient_balance(error) from None

    def _claim(self, claim: tuple[str, str], entry: Entry, now: datetime) -> dict[str, Any]:
        key, body = claim
        held = IdempotencyClaim(entry.account_id, COMMAND + key, body, entry.created_at, entry.created_at)
        return {"Put": put_unclaimed(self.claims_table, held, now)}


def _respect_holds(decision: Decision, command: Command, now: datetime) -> Decision:
    """Return a command's decision, with its hold ended.

    Raises InsufficientBalance if it spends points that a hold reserves. A hold that is captured has reserved
    its own: where a clawback left less than all holds reserve, who comes first is served.
    """
    profile = replace(decision.profile, holds=holds_without(decision.profile.holds, command.ends or ""))
    held, wanted = held_points(profile.holds, now), -command.draft.points
    is_spending = command.draft.kind is EntryKind.REDEEM and wanted > 0
    if is_spending and not command.ends and profile.balance < held:
        raise InsufficientBalance(profile.balance + wanted - held, wanted)
    return replace(decision, profile=profile)


def insufficient_balance(error: InsufficientBalance) -> ApiError:
    """Return the answer to a command that the balance does not cover."""
    details = {"balance": error.balance, "points": error.wanted}
    return ApiError(409, "insufficient_balance", str(error), details)


# Redeem points, reverse, freeze (rules 2 and 6). Rewards of the book: reward_redemptions.


@dataclass(frozen=True, slots=True)
class Rewards:
    """Commands that write entries."""

    commands: Commands
    books: BookStore  # what freezes cost

    def redeem(self, user_id: str, points: int, reward_id: str, key: str, now: datetime) -> CommandResult:
        """Spend any number of points, for those who are trusted to name it.

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
        Each free one is a claim of its own, put by the same transaction, so no month has more, however many
        ask at once.
        """
        terms = self._terms(now)

        def command(account: Account) -> Command:
            places = [f"free-freeze:{now:%Y-%m}:{n}" for n in range(terms.free_a_month)]
            taken = self.commands.claims_of(user_id, places, now)
            left = [place for place in places if place not in taken]
            price = terms.price(len(taken))
            if price:
                check_review(account.profile)
            freeze = self._freeze(account, None, price, now)
            return Command(freeze, left[0] if left else None)

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
        local = today(now, account.profile.zone)
        held, held_max = self._held(account.profile, local), self._terms(now).held_max
        if granted_on is None and held >= held_max:
            raise ApiError(409, "freezes_held_max", f"{held} freezes are held, and {held_max} may be")
        return Draft(
            *(EntryKind.REDEEM, -price),
            reward_id=FREEZE_REWARD,
            freeze=FreezeNote.GRANTED,
            freeze_date=(granted_on or local).isoformat(),
        )

    def _terms(self, now: datetime) -> FreezeRules:
        return self.books.books().at(now).book.freezes

    def _held(self, profile: Profile, local: date) -> int:
        last = profile.streak.last if profile.streak else local
        return shown_streak(profile.streak, profile.cover, max(local, last)).freezes_available

    def reverse(
        self,
        user_id: str,
        created_at: str,
        now: datetime,
        ended: Callable[[Entry], Sequence[dict[str, Any]]] = lambda _: (),
    ) -> CommandResult:
        """Undo a redemption; raises 404, 409 not_reversible, 409 already_reversed.

        If it bought a freeze, the freeze goes too. A freeze that is spent already becomes a debt. A free one
        that is returned does not come back into the month's allowance. ended: returns the further actions of
        the transaction that reverses an entry; what it raises is raised.
        """

        def attempt(account: Account) -> CommandResult:
            entry = self._not_reversed(user_id, created_at)
            if entry.draft.freeze is FreezeNote.GRANTED and entry.draft.freeze_date:
                granted = date.fromisoformat(entry.draft.freeze_date)
                account = self.commands.accounts.reaching(account, granted)
            also = ended(entry)
            return self.commands.attempt(
                account,
                now,
                lambda each: Command(self._undo(entry, now, each), undoes=entry, also=lambda _: also),
            )

        return self.commands.retry(user_id, now, attempt)

    def _not_reversed(self, user_id: str, created_at: str) -> Entry:
        entry = self.commands.accounts.ledger.get(user_id, created_at)
        if entry is None:
            raise ApiError(404, "not_found", "there is no such entry")
        if entry.draft.kind is not EntryKind.REDEEM:
            raise ApiError(409, "not_reversible", f"an entry of kind {entry.draft.kind} is not a redemption")
        if entry.reversed_by:
            raise ApiError(409, "already_reversed", "the redemption was reversed before")
        return entry

    def _undo(self, entry: Entry, now: datetime, account: Account) -> Draft:
        undo = Draft(
            EntryKind.REVERSE,
            -entry.draft.points,
            reverses=entry.created_at,
            reward_id=entry.draft.reward_id,
            held_at=entry.draft.held_at,
            brand=entry.draft.brand,
        )
        if entry.draft.freeze is FreezeNote.GRANTED and entry.draft.freeze_date:
            profile, granted = account.profile, date.fromisoformat(entry.draft.freeze_date)
            gone = return_date(profile.streak, profile.cover, granted, today(now, profile.zone))
            return replace(undo, freeze=FreezeNote.REVOKED, freeze_date=gone.isoformat())
        return undo


def check_review(profile: Profile) -> None:
    """Raise 409 while an admin has yet to look at the account (rule 8)."""
    if profile.tz_review:
        text = "the account is under review: its points stay, and can be spent once an admin releases it"
        raise ApiError(409, "under_review", text, {"since": profile.review_since})


# Reverse an event and what it earned: a refunded purchase, found fraud (rule 12).


@dataclass(frozen=True, slots=True)
class Clawbacks:
    """Commands that reverse events."""

    commands: Commands
    books: BookStore  # what counts for what other events earn in their place

    def claw_back(self, user_id: str, event_id: str, reason: str, key: str, now: datetime) -> CommandResult:
        """Reverse an event; returns its CLAWBACK.

        Raises 404 for an event without an entry, 409 already_reversed, or conflict for a key used with
        another body. It reads the entries since the weeks that the event can count in.
        """
        _check_id(event_id)
        books = self.books.look()

        def command(account: Account) -> Command:
            entries = self._entries(user_id, event_id)
            earned = _earn_entry(entries, event_id)
            drafts = clawback(
                earned.draft, earned.created_at, [each.draft for each in entries], books, reason
            )
            *before, draft = drafts
            days = self._days(user_id, drafts)
            return Command(draft, before=tuple(before), undoes=earned, days=days)

        result = self.commands.once(user_id, f"clawback:{key}", f"{event_id} {reason}", now, command)
        # A lot that had expired has less to lose now. Who reads the balance before would write it.
        self.commands.settler.settle(user_id, now)
        return result

    def _entries(self, user_id: str, event_id: str) -> Sequence[Entry]:
        """Return the entries of the weeks that an event can count in, and all later ones."""
        day = instant_of(event_id) - APART_MAX
        since = week_of(day.date())[0] - APART_MAX
        return self.commands.accounts.ledger.after(user_id, stamp(_midnight(since, day)))[0]

    def _days(self, user_id: str, drafts: Sequence[Draft]) -> dict[date, Day | None]:
        dates = {date.fromisoformat(each.activity_date) for each in drafts if each.activity_date}
        found = self.commands.accounts.days((user_id, day) for day in dates)
        return {day: found.get((user_id, day)) for day in dates}


def _midnight(day: date, like: datetime) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=like.tzinfo)


def _check_id(event_id: str) -> None:
    """Raise 404 for what can be no event's id."""
    if not is_stamp(event_id.partition("#")[0]):
        raise ApiError(404, "not_found", "there is no such event")


def _earn_entry(entries: Sequence[Entry], event_id: str) -> Entry:
    """Return an event's EARN; raises 404, 409 already_reversed.

    The ledger says what was reversed, not the mark: a writer that was late may have put the EARN once more.
    """
    if event_id in reversed_events(each.draft for each in entries):
        raise ApiError(409, "already_reversed", "the event was reversed before")
    for each in entries:
        if each.draft.kind is EntryKind.EARN and each.draft.event_id == event_id:
            return each
    raise ApiError(404, "not_found", "the ledger has no entry of such an event (yet)")
