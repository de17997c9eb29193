"""What a user can spend now, by the ledger itself (docs/rules.md, rules 6 and 11)."""

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from adapters.engagement.account_store import AccountStore
from adapters.engagement.expiry import Settler, expiry_rules, is_due
from adapters.engagement.ledger_store import TooManyEntries
from ingest.web.caller import invalid_field
from ingest.web.json_schema import FLAG, INSTANT, TEXT, closed_object, list_of, one_of, text, whole
from rules.book.point_rules import instant_of_expiry, lifetime_days_max
from rules.days import MICROSECOND, stamp
from rules.engagement.account_state import Profile
from rules.engagement.ledger import OPENED_AT, debt_of
from rules.engagement.lots import Hold, held_points, open_lots
from rules.engagement.points import AS_OF_MAX, first_place, points_added_later

ENTRIES_MAX = 10_000  # one request reads no more entries
AVAILABLE = whole("what can be spent: balance - held", 0)
DEBT = whole("what is owed: what is earned next pays it", 0)
POINTS_MAX = 1_000_000_000  # of one hold or redemption
HOLD_ID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
HOLD_VIEW = closed_object(
    {
        "hold_id": TEXT,
        "points": whole("", 1),
        "reward_id": TEXT,
        "held_at": INSTANT,
        "until": text("then it lapses by itself", format="date-time"),
        "status": one_of(["held", "captured", "released", "lapsed"]),
        "duplicate?": FLAG,
    }
)
BALANCE = closed_object(
    {
        "user_id": TEXT,
        "balance?": whole("of the newest ledger entry; below 0: a debt"),
        "held?": whole("points that open holds reserve", 0),
        "available?": AVAILABLE,
        "debt?": DEBT,
        "as_of": INSTANT,
        "known_balance?": whole("with as_of: of the newest entry then"),
        "true_balance?": whole("with as_of: with what was written later of then"),
        "holds?": list_of(HOLD_VIEW),
        "expiring?": list_of(
            closed_object({"at": INSTANT, "points": whole("", 1)}),
            description="what is left of each lot that is yet to expire, the next one first",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Balances:
    """Reads balances, strongly consistent, from the newest entries: a profile may be behind them."""

    accounts: AccountStore
    settler: Settler

    def view(self, user_id: str, now: datetime) -> dict[str, Any]:
        """Return the balance, the points of it that are held, that can be spent, and that expire, with dates.

        Points that have expired by now are written first.
        """
        # The profile is read first: if an entry has captured a hold meanwhile, that entry is in the balance.
        profile = self.accounts.profile(user_id)
        if is_due(profile, now):
            profile = self.settler.settle(user_id, now)
        head = self.accounts.ledger.newest(user_id)
        balance, held = head.balance if head else 0, held_points(profile.holds, now)
        return {
            "user_id": user_id,
            "balance": balance,
            "held": held,
            "available": max(0, balance - held),
            "debt": debt_of(balance),
            "as_of": stamp(now),
            "holds": [hold_view(hold) for hold in profile.holds if hold.is_open(now)],
            "expiring": [
                {"at": stamp(instant_of_expiry(on)), "points": points}
                for on, points in self._expiring(profile).items()
            ],
        }

    def as_of(self, user_id: str, instant: datetime, now: datetime) -> dict[str, Any]:
        """Return the balance at an instant: what the ledger said then, and what was true then.

        The true balance counts all points that had been earned or had expired by then, even if their entry
        was written later, and leaves out redemptions that were reversed later. Reads the entries since that
        instant, and those of its week. Raises 422 for an instant ahead, more than 400 days ago, or before
        more than 10,000 entries.
        """
        if not now - AS_OF_MAX <= instant <= now:
            raise invalid_field("as_of", f"must be one of the last {AS_OF_MAX.days} days")
        profile = self.accounts.profile(user_id)
        if is_due(profile, now):
            self.settler.settle(user_id, now)
        ledger, place = self.accounts.ledger, first_place(instant)
        # A page leaves out its second bound, so a microsecond is added.
        newest = ledger.page(user_id, OPENED_AT, stamp(instant + MICROSECOND), 1)
        balance = newest[0].balance if newest else 0
        try:
            ledger.check_few(profile.head, user_id, place, ENTRIES_MAX)
            entries, _ = ledger.after(user_id, place, is_strong=False, most=ENTRIES_MAX)
        except TooManyEntries:
            raise invalid_field("as_of", self._too_many(profile, place, now)) from None
        return {
            "user_id": user_id,
            "as_of": stamp(instant),
            "known_balance": balance,
            "true_balance": balance + points_added_later(entries, instant, self.settler.books.look()),
        }

    def _too_many(self, profile: Profile, place: str, now: datetime) -> str:
        """Return why an instant is refused: too many entries follow its place, perhaps even that of now."""
        latest = first_place(now)
        try:
            self.accounts.ledger.check_few(profile.head, profile.user_id, latest, ENTRIES_MAX)
        except TooManyEntries:
            return f"must be left out for now: over {ENTRIES_MAX} entries follow {latest[:10]}"
        return f"must be of a later week: over {ENTRIES_MAX} entries follow {place[:10]}"

    def _expiring(self, profile: Profile) -> dict[date, int]:
        """Return what is left of each lot that is yet to expire, by the date on which it does."""
        if (first := profile.expiry.first_unsettled) is None:
            return {}
        longest = max(map(lifetime_days_max, expiry_rules(self.settler.books.books())), default=0)
        lots: Counter[date] = Counter()
        since = first - timedelta(days=longest)
        for _, lots_of_day in self.accounts.lots(profile.user_id, since, is_strong=False):
            for expires_on, points in lots_of_day.items():
                if expires_on > profile.expiry.settled_on:
                    lots[expires_on] += points
        lasting = profile.total_points - profile.expiry.settled_points - lots.total()
        return open_lots(lots, profile.balance, lasting)


def hold_view(hold: Hold, status: str = "held") -> dict[str, Any]:
    """Return a hold as the API shows it."""
    return {
        "hold_id": hold.hold_id,
        "points": hold.points,
        "reward_id": hold.reward_id,
        "held_at": hold.held_at,
        "until": hold.until,
        "status": status,
    }
