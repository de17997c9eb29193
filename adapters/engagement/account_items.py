"""Profiles, days and ledger entries as table attributes, and back (keys and indexes: template.yaml)."""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import Any, TypeVar

from adapters.platform.items import Item, decode_item, encode_item, item_bytes
from adapters.platform.tables import get_all, get_one
from rules.book.daily import DailyTerms
from rules.days import key_of_stamp, region_of, stamp_of_key
from rules.engagement.account_settings import amnesty_of_text, amnesty_text
from rules.engagement.account_state import Day, Profile
from rules.engagement.board_settings import board_settings_of, is_hidden
from rules.engagement.boards import partition_of
from rules.engagement.brought_forward import bring_forward, settled_checkpoints
from rules.engagement.carriers import carried_drafts, carried_text
from rules.engagement.ledger import Entry, Head, draft_from, draft_values
from rules.engagement.lots import Expiry, Hold
from rules.engagement.packed_dates import (
    pack_changes,
    pack_dates,
    pack_spans,
    unpack_changes,
    unpack_dates,
    unpack_spans,
)
from rules.engagement.period_points import pack_period_points, unpack_period_points
from rules.engagement.reconciliation import has_lapsed
from rules.engagement.repairs import Repair
from rules.engagement.rest_days import NO_TERMS, RestDays, choice_of_text, choice_text
from rules.engagement.streak import BroughtForward, Checkpoint, Cover, Streak, lapse_date
from rules.user_ids import kept_partition, user_of_partition

# A user has more items in DailyActivity, with a word in place of a date: the settled part of streaks, of
# achievements and of active dates (KeptItems), and the place in the leagues (adapters/engagement/leagues.py).
# They have a partition of their own, so that a query of the user gives days alone.
GOALS, ACHIEVEMENTS, ACTIVE_DATES, LEAGUE = "goals", "totals", "dates", "league"
# A profile's item that is larger is brought forward, by whole months. So it is this much below the 1,024
# bytes of a write unit, which is enough for the freezes and pauses of one more month.
PROFILE_BYTES_MAX = 800
# It is brought forward until it is below this part of PROFILE_BYTES_MAX. What is left in the profile is
# enough for most reads of the past, because they concern the last years.
PART_KEPT = 0.75
PARTITION = "leaderboard_partition"  # of the index StreakLeaderboard
# The partition of the index UnderReview. Only accounts that an admin has yet to look at are in it.
UNDER_REVIEW = "open"
EXPIRY_SHARDS = 8  # partitions of the index ByExpiry
# Accounts whose bonuses are due are in partitions of their own, whenever their points expire.
BONUS_SHARD = "bonus#"
NO_LOT = date.min.isoformat()  # their key if they have no points to expire
Value = TypeVar("Value")


class KeptItems:
    """The items of all users in DailyActivity under one word."""

    def __init__(self, dynamodb: Any, days: str, sort_key: str) -> None:
        """days: the name of the table DailyActivity. sort_key: the word."""
        self._dynamodb, self._days, self._sort_key = dynamodb, days, sort_key

    def get(self, user_id: str, read: Callable[[str], Value], *, is_strong: bool = False) -> Value | None:
        """Return the content of a user's item; None if the item is missing or damaged.

        read: makes the content of the item's text; raises ValueError for a damaged text. is_strong: whether
        the read is strongly consistent.
        """
        key = {"user_id": kept_partition(user_id), "activity_date": self._sort_key}
        item = get_one(self._dynamodb, self._days, key, is_strong)
        return _content(item, read) if item else None

    def get_all(self, user_ids: Iterable[str], read: Callable[[str], Value]) -> dict[str, Value]:
        """Return the contents of users' items, strongly consistent; a missing or damaged one is left out."""
        keys = [{"user_id": kept_partition(user), "activity_date": self._sort_key} for user in user_ids]
        found = {
            user_of_partition(item["user_id"]["S"]): _content(item, read)
            for item in get_all(self._dynamodb, self._days, keys)
        }
        return {user: content for user, content in found.items() if content is not None}

    def put(self, user_id: str, text: str) -> dict[str, Any]:
        """Return the arguments of a put of a user's item."""
        item = encode_item({"user_id": kept_partition(user_id), "activity_date": self._sort_key})
        # No day has this attribute: the publisher makes no row of days of an item that has it.
        packed: Item = {"packed": {"B": zlib.compress(text.encode())}}
        return {"TableName": self._days, "Item": item | packed}


def _content(item: Item, read: Callable[[str], Value]) -> Value | None:
    """Return the content of a kept item; None for a damaged one."""
    try:
        return read(zlib.decompress(item["packed"]["B"]).decode())
    except (KeyError, TypeError, ValueError, zlib.error):
        return None


def profile_attributes(profile: Profile, shards: int = 0) -> dict[str, Any]:
    """Return a profile as plain attributes. shards: of a region in the index StreakLeaderboard; 0: without
    the index's attribute, as in Redis. A profile without a streak, or of a user who has left the boards, is
    not in the index.
    """
    attributes: dict[str, Any] = {
        "user_id": profile.user_id,
        "version": profile.version,
        "total_bestie_points": profile.total_points,
        "bonus_points": profile.bonus_points or None,
        "balance": profile.balance,
        "timezone": profile.zone,  # the zone in force, under the name that the tables' document has
        "chosen_zone": profile.chosen_zone,
        "observed_zone": profile.observed_zone,
        "observed_at": profile.observed_at or None,
        "streak_updated_at": profile.updated_at,
        **_cover_attributes(profile.cover),
        "recent_tz_changes": [f"{at} {to}" for at, to in profile.tz_changes] or None,
        "zones_seen": [f"{at} {to}" for at, to in profile.zones_seen] or None,
        "skews_seen": [f"{at} {minutes}" for at, minutes in profile.skews_seen] or None,
        "tz_review": profile.tz_review or None,
        "review_state": UNDER_REVIEW if profile.tz_review else None,
        "review_since": profile.review_since or None,
        "review_evidence": list(profile.review_evidence) or None,
        "reviewed_since": profile.reviewed_since or None,
        "released_at": profile.released_at or None,
        "alias": profile.alias,
        "board_settings": [each.text for each in profile.board_settings] or None,
        "applied_through": profile.applied_through or None,
        "repairs": [repair.text for repair in profile.repairs] or None,
        "holds": [hold.text for hold in profile.holds] or None,
        **_expiry_attributes(profile.user_id, profile.expiry),
        "past_entry": profile.past_entry or None,
        "backfilled": profile.backfilled or None,
        "period_points": pack_period_points(profile.period_points) or None,
        "amnesties": [amnesty_text(number, dates) for number, dates in profile.amnesties] or None,
    }
    if profile.head:
        attributes |= {"ledger_head": profile.head.created_at, "ledger_seq": profile.head.seq}
    if profile.streak:
        attributes |= _streak_attributes(profile, profile.streak, shards)
    return attributes


def _cover_attributes(cover: Cover) -> dict[str, Any]:
    return {
        "freezes": pack_changes(cover.freezes) or None,
        "pauses": pack_spans(sorted(cover.pauses)) or None,
        "rest_days": [choice_text(*choice) for choice in cover.rest.chosen] or None,
        "skipped_dates": [day.isoformat() for day in sorted(cover.skipped)] or None,
        "opening": cover.opening and cover.opening.text,
        "brought_forward": cover.brought_forward and cover.brought_forward.text,
    }


def _streak_attributes(profile: Profile, streak: Streak, shards: int) -> dict[str, Any]:
    lapses_at = profile.start_of(lapse_date(streak, profile.cover))
    is_listed = shards and not is_hidden(profile.board_settings)
    return {
        "current_streak": streak.length,
        "longest_streak": streak.longest,
        "last_activity_date": streak.last.isoformat(),
        "active_days": streak.active_days,
        "freezes_spent": pack_dates(streak.spent) or None,
        "streak_checkpoints": [checkpoint.text for checkpoint in streak.checkpoints],
        PARTITION: partition_of(profile.user_id, region_of(profile.zone), shards) if is_listed else None,
        "lapses_at": int(lapses_at.timestamp()),
    }


def profile_item(profile: Profile, shards: int, now: datetime) -> Item:
    """Return a profile as it is written: brought forward if it is large (rules.engagement.brought_forward).

    A streak that has lapsed by then does not enter the index.
    """
    item = _as_written(profile, shards, now)
    if item_bytes(item) > PROFILE_BYTES_MAX:
        for start in settled_checkpoints(profile):
            item = _as_written(bring_forward(profile, start), shards, now)
            if item_bytes(item) <= PROFILE_BYTES_MAX * PART_KEPT:
                break
    return item


def _as_written(profile: Profile, shards: int, now: datetime) -> Item:
    attributes = profile_attributes(profile, shards)
    is_over = has_lapsed(attributes.get("lapses_at"), now)
    return encode_item(lapsed_attributes(attributes) if is_over else attributes)


def lapsed_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a profile whose streak has lapsed: 0, and not in the leaderboard's index.

    run_length has the length, so that profile_from reads the same profile. The next write of the profile
    removes it again.
    """
    run = attributes["current_streak"]
    return {**attributes, PARTITION: None, "current_streak": 0, "run_length": run}


def profile_from(attributes: dict[str, Any], daily_terms: DailyTerms = NO_TERMS) -> Profile:
    """Read a profile's attributes. daily_terms: what the books say of dates (Books.daily_terms).

    Without them the profile has no rest days.
    """
    head = None
    if "ledger_head" in attributes:
        head = Head(attributes["ledger_head"], attributes["ledger_seq"], attributes["balance"])
    return Profile(
        user_id=attributes["user_id"],
        version=attributes["version"],
        head=head,
        total_points=attributes["total_bestie_points"],
        bonus_points=attributes.get("bonus_points") or 0,
        streak=_streak_from(attributes) if "last_activity_date" in attributes else None,
        cover=_cover_from(attributes, daily_terms),
        chosen_zone=attributes.get("chosen_zone"),
        observed_zone=attributes.get("observed_zone"),
        observed_at=attributes.get("observed_at") or "",
        tz_changes=_changes_from(attributes.get("recent_tz_changes")),
        zones_seen=_changes_from(attributes.get("zones_seen")),
        skews_seen=_changes_from(attributes.get("skews_seen")),
        tz_review=bool(attributes.get("tz_review")),
        review_since=attributes.get("review_since") or "",
        review_evidence=tuple(attributes.get("review_evidence") or ()),
        reviewed_since=attributes.get("reviewed_since") or "",
        released_at=attributes.get("released_at") or "",
        alias=attributes.get("alias"),
        board_settings=board_settings_of(attributes.get("board_settings")),
        updated_at=attributes["streak_updated_at"],
        applied_through=attributes.get("applied_through") or "",
        repairs=tuple(map(Repair.of, attributes.get("repairs") or ())),
        holds=tuple(map(Hold.of, attributes.get("holds") or ())),
        expiry=_expiry_from(attributes),
        past_entry=attributes.get("past_entry") or "",
        amnesties=tuple(map(amnesty_of_text, attributes.get("amnesties") or ())),
        backfilled=attributes.get("backfilled") or 0,
        period_points=unpack_period_points(attributes.get("period_points") or ""),
    )


def with_daily_terms(profile: Profile, terms: DailyTerms) -> Profile:
    """Return a profile that knows what the books say of dates (Books.daily_terms)."""
    cover = profile.cover
    if cover.rest.terms == terms:
        return profile
    return replace(profile, cover=replace(cover, rest=replace(cover.rest, terms=terms)))


def _expiry_attributes(user_id: str, expiry: Expiry) -> dict[str, Any]:
    # The index ByExpiry has a profile while there is a lot to come, or while bonuses are due.
    first, shard = expiry.first_unsettled and expiry.first_unsettled.isoformat(), shard_of_expiry(user_id)
    if expiry.bonuses_due:
        first, shard = first or NO_LOT, f"{BONUS_SHARD}{shard}"
    return {
        "expiry_shard": shard if first else None,
        "expires_next": first,
        "expiry_settled_on": None if expiry.settled_on == date.min else expiry.settled_on.isoformat(),
        "expiry_settled_points": expiry.settled_points or None,
    }


def _expiry_from(attributes: dict[str, Any]) -> Expiry:
    first_unsettled, settled_on = attributes.get("expires_next"), attributes.get("expiry_settled_on")
    return Expiry(
        date.fromisoformat(first_unsettled) if first_unsettled and first_unsettled != NO_LOT else None,
        date.fromisoformat(settled_on) if settled_on else date.min,
        attributes.get("expiry_settled_points") or 0,
        (attributes.get("expiry_shard") or "").startswith(BONUS_SHARD),
    )


def shard_of_expiry(user_id: str) -> str:
    """Return the partition of the index ByExpiry that a profile is in."""
    return str(zlib.crc32(user_id.encode()) % EXPIRY_SHARDS)


def _changes_from(texts: list[str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((at, to) for at, _, to in (text.partition(" ") for text in texts or ()))


def _streak_from(attributes: dict[str, Any]) -> Streak:
    return Streak(
        last=date.fromisoformat(attributes["last_activity_date"]),
        length=attributes["run_length" if "run_length" in attributes else "current_streak"],
        longest=attributes["longest_streak"],
        active_days=attributes["active_days"],
        spent=unpack_dates(attributes.get("freezes_spent") or ""),
        checkpoints=tuple(map(Checkpoint.of, attributes["streak_checkpoints"])),
    )


def _cover_from(attributes: dict[str, Any], terms: DailyTerms) -> Cover:
    sums, opening = attributes.get("brought_forward"), attributes.get("opening")
    return Cover(
        freezes=unpack_changes(attributes.get("freezes") or ""),
        pauses=unpack_spans(attributes.get("pauses") or ""),
        skipped=frozenset(map(date.fromisoformat, attributes.get("skipped_dates") or ())),
        brought_forward=BroughtForward.of(sums) if sums else None,
        opening=Checkpoint.of(opening) if opening else None,
        rest=RestDays(terms, tuple(map(choice_of_text, attributes.get("rest_days") or ()))),
    )


def day_attributes(day: Day) -> dict[str, Any]:
    """Return a day as plain attributes."""
    return {
        "user_id": day.user_id,
        "activity_date": day.activity_date.isoformat(),
        "first_event_id": day.first_event_id,
        "events_count": day.events_count,
        "points_earned": day.points_earned,
        "points_by_cap": dict(day.points_by_cap),
        "ledger_head": day.watermark,
        "created_at": day.created_at,
        "last_event_id": day.last_event_id,
        "passive_events": day.passive_events or None,
        "is_inactive": None if day.is_active else True,
        "lots": dict(day.lots) or None,
        "reversed_events": day.reversed_events or None,
        "measures": dict(day.measures) or None,
    }


def day_from(attributes: dict[str, Any]) -> Day:
    """Read a day's attributes."""
    return Day(
        user_id=attributes["user_id"],
        activity_date=date.fromisoformat(attributes["activity_date"]),
        first_event_id=attributes["first_event_id"],
        events_count=attributes["events_count"],
        points_earned=attributes["points_earned"],
        points_by_cap=attributes.get("points_by_cap") or {},
        watermark=attributes["ledger_head"],
        created_at=attributes["created_at"],
        last_event_id=attributes.get("last_event_id", ""),
        passive_events=attributes.get("passive_events") or 0,
        lots=attributes.get("lots") or {},
        reversed_events=attributes.get("reversed_events") or 0,
        measures=attributes.get("measures") or {},
    )


def entry_key(account_id: str, place: str) -> dict[str, str]:
    """Return the key of the entry at a place (a stamp) as plain attributes."""
    return {"account_id": account_id, "created_at": key_of_stamp(place)}


def entry_item(entry: Entry) -> Item:
    """Return an entry as table attributes; only the head has `active`."""
    return encode_item(
        {
            **entry_key(entry.account_id, entry.created_at),
            "seq": entry.seq,
            "balance": entry.balance,
            **draft_values(entry.draft),
            "active": entry.active or None,
            "reversed_by": entry.reversed_by,
            "applied_through": entry.applied_through or None,
            "salt": entry.salt.hex() or None,
            "carried": carried_text(entry.carried) if entry.carried else None,
        }
    )


def entry_from(stored: Item) -> Entry:
    """Read an entry."""
    attributes = decode_item(stored)
    return Entry(
        account_id=attributes["account_id"],
        created_at=stamp_of_key(attributes["created_at"]),
        seq=attributes["seq"],
        balance=attributes["balance"],
        draft=draft_from(attributes),
        carried=tuple(carried_drafts(attributes["carried"])) if "carried" in attributes else (),
        active=attributes.get("active", False),
        reversed_by=attributes.get("reversed_by"),
        applied_through=attributes.get("applied_through") or "",
        salt=bytes.fromhex(attributes.get("salt") or ""),
    )
