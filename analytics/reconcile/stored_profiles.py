"""A profile as it is stored, perhaps damaged, and what of it no ledger has.

The ledger leads to all of a profile (rule 6) but for its version and when it was written, the alias, how
far lots are settled and whether bonuses are, which version an import made, and a review because the ledger
is in doubt. A repair keeps these, as far as they can be read.
"""

from datetime import datetime
from typing import Any

from adapters.engagement.account_items import profile_attributes, profile_from
from adapters.platform.items import Item, decode_item, encode_item
from rules.book.daily import DailyTerms
from rules.days import zone
from rules.engagement.account_state import Profile
from rules.engagement.reconciliation import REVIEW
from rules.engagement.rest_days import NO_TERMS

# What reading a damaged item or row may raise.
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
BLANK = {"version": 0, "total_bestie_points": 0, "balance": 0, "timezone": "UTC", "streak_updated_at": ""}
# The attributes of a profile's item that do not follow from the ledger.
KEPT = (
    *("version", "streak_updated_at", "alias", "backfilled", *REVIEW),
    *("expires_next", "expiry_shard", "expiry_settled_on", "expiry_settled_points"),
)


def readable_profile(stored: Item, daily_terms: DailyTerms = NO_TERMS) -> Profile | None:
    """Return the profile that an item holds. None if it cannot be read, or contradicts itself.

    daily_terms: what the books say of dates. It decides when a streak lapses.
    """
    try:
        profile = profile_from(decode_item(stored), daily_terms)
        _check_consistent(profile)
    except UNREADABLE:
        return None
    return profile


def _check_consistent(profile: Profile) -> None:
    """Raise an error of UNREADABLE if this system cannot have written a profile."""
    datetime.fromisoformat(profile.updated_at)
    zone(profile.zone)
    streak, head = profile.streak, profile.head
    numbers = [profile.version, profile.total_points, profile.expiry.settled_points, profile.backfilled]
    numbers += [streak.length, streak.longest, streak.active_days] if streak else []
    numbers += [head.seq, head.balance] if head else []
    texts = (profile.observed_at, profile.applied_through, head.created_at if head else "")
    if not all(type(number) is int for number in numbers) or not all(isinstance(text, str) for text in texts):
        raise TypeError(profile.user_id)


def kept_of(user_id: str, stored: Item | None, daily_terms: DailyTerms = NO_TERMS) -> Profile:
    """Return what a repair keeps of a stored profile (KEPT), as a profile with nothing else.

    daily_terms: what the books say of dates, which no profile stores.

    Each attribute is read by itself, so that one that is damaged spoils no other. Such a one is left out.
    """
    readable: dict[str, Any] = {}
    for name in KEPT:
        if stored is None or name not in stored:
            continue
        attribute = {name: stored[name]}
        try:
            profile = profile_from({"user_id": user_id, **BLANK, **decode_item(attribute)})
            is_same = encode_item({name: profile_attributes(profile, 1)[name]}) == attribute
            numbers = (profile.version, profile.expiry.settled_points, profile.backfilled)
            if not is_same or not all(type(number) is int for number in numbers):
                raise ValueError(name)
            if profile.updated_at:
                datetime.fromisoformat(profile.updated_at)
        except UNREADABLE:
            continue
        readable |= decode_item(attribute)
    return profile_from({"user_id": user_id, **BLANK, **readable}, daily_terms)
