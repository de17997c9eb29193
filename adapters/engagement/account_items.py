"""Profiles, days and ledger entries as table attributes, and back (keys and indexes: template.yaml)."""

# Long: each item is written and read in one place.

import zlib
from datetime import date
from typing import Any

from adapters.platform.items import Item, item, plain
from rules.book.book import Cap
from rules.days import region_of, start_of
from rules.engagement.account_state import Day, Profile
from rules.engagement.carrying.packed_drafts import from_texts, pack, unpack
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Head
from rules.engagement.streak.checkpoints import Checkpoint
from rules.engagement.streaks import Cover, Streak, lapse_date, net_freezes

# The partition of the index UnderReview. Only accounts that an admin has yet to look at are in it.
UNDER_REVIEW = "open"
PARTITION = "leaderboard_partition"  # of the index StreakLeaderboard


def partition_of(user_id: str, zone: str, shards: int) -> str:
    """Return a user's leaderboard partition: `europe#3` is a region and one of its shards."""
    return f"{region_of(zone)}#{zlib.crc32(user_id.encode()) % shards}"


def profile_attributes(profile: Profile, shards: int = 0) -> dict[str, Any]:
    """Return a profile as plain attributes.

    shards: of the index StreakLeaderboard; 0: the profile stays out of it, as one without a streak does.
    """
    # Long: an attribute a line.
    attributes: dict[str, Any] = {
        "user_id": profile.user_id,
        "version": profile.version,
        "total_bestie_points": profile.total_points,
        "balance": profile.balance,
        "timezone": profile.zone,
        "timezone_chosen": profile.timezone,
        "observed_zone": profile.observed_zone,
        "observed_at": profile.observed_at or None,
        "streak_updated_at": profile.updated_at,
        **_cover_attributes(profile.cover),
        "recent_tz_changes": [f"{at} {to}" for at, to in profile.tz_changes] or None,
        "zones_seen": [f"{at} {to}" for at, to in profile.zones_seen] or None,
        "tz_review": profile.tz_review or None,
        "review_state": UNDER_REVIEW if profile.tz_review else None,
        "review_since": profile.review_since or None,
        "review_evidence": list(profile.review_evidence) or None,
        "released_at": profile.released_at or None,
        "alias": profile.alias,
        "applied_through": profile.applied_through or None,
    }
    if profile.head:
        attributes |= {"ledger_head": profile.head.created_at, "ledger_seq": profile.head.seq}
    if profile.streak:
        attributes |= _streak_attributes(profile, profile.streak, shards)
    return attributes


def _cover_attributes(cover: Cover) -> dict[str, Any]:
    return {
        "freezes": [f"{day.isoformat()}{change:+d}" for day, change in cover.freezes] or None,
        "pauses": [f"{first.isoformat()}/{last.isoformat()}" for first, last in cover.pauses] or None,
        "skipped_dates": [day.isoformat() for day in sorted(cover.skipped)] or None,
    }


def _streak_attributes(profile: Profile, streak: Streak, shards: int) -> dict[str, Any]:
    lapses_at = start_of(lapse_date(streak, profile.cover), profile.zone)
    return {
        "current_streak": streak.length,
        "longest_streak": streak.longest,
        "last_activity_date": streak.last.isoformat(),
        "active_days": streak.active_days,
        "freezes_spent": [day.isoformat() for day in streak.spent] or None,
        "streak_checkpoints": None
        if streak.checkpoints is None
        else list(map(_checkpoint_text, streak.checkpoints)),
        PARTITION: partition_of(profile.user_id, profile.zone, shards) if shards else None,
        "lapses_at": int(lapses_at.timestamp()),
    }


def lapsed_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a profile's attributes, lowered: current_streak 0, and out of the leaderboard's index.

    run_length keeps the length, so that profile_from reads the same profile. The next write of the profile
    has the common form again.
    """
    run = attributes["current_streak"]
    return {**attributes, PARTITION: None, "current_streak": 0, "run_length": run}


def expected_item(attributes: dict[str, Any], stored: Item) -> Item:
    """Return the item that a stored profile must be.

    A stored profile is in the index or not, as the setting IndexStreaks was when it was written. Both are
    right. So the partition is only compared where there are two.
    """
    expected = item(attributes)
    if PARTITION not in stored:
        expected.pop(PARTITION, None)
    return {PARTITION: stored[PARTITION], **expected} if PARTITION in stored else expected


def profile_from(attributes: dict[str, Any]) -> Profile:
    """Read a profile's attributes."""
    head = None
    if "ledger_head" in attributes:
        head = Head(attributes["ledger_head"], attributes["ledger_seq"], attributes["balance"])
    return Profile(
        user_id=attributes["user_id"],
        version=attributes["version"],
        head=head,
        total_points=attributes["total_bestie_points"],
        streak=_streak_from(attributes) if "last_activity_date" in attributes else None,
        cover=_cover_from(attributes),
        timezone=attributes.get("timezone_chosen"),
        observed_zone=attributes.get("observed_zone"),
        observed_at=attributes.get("observed_at") or "",
        tz_changes=_changes_from(attributes.get("recent_tz_changes")),
        zones_seen=_changes_from(attributes.get("zones_seen")),
        tz_review=bool(attributes.get("tz_review")),
        review_since=attributes.get("review_since") or "",
        review_evidence=tuple(attributes.get("review_evidence") or ()),
        released_at=attributes.get("released_at") or "",
        alias=attributes.get("alias"),
        updated_at=attributes["streak_updated_at"],
        applied_through=attributes.get("applied_through") or "",
    )


def _changes_from(texts: list[str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((at, to) for at, _, to in (each.partition(" ") for each in texts or ()))


def _streak_from(attributes: dict[str, Any]) -> Streak:
    checkpoints = attributes.get("streak_checkpoints")
    return Streak(
        last=date.fromisoformat(attributes["last_activity_date"]),
        length=attributes["run_length" if "run_length" in attributes else "current_streak"],
        longest=attributes["longest_streak"],
        active_days=attributes["active_days"],
        spent=tuple(map(date.fromisoformat, attributes.get("freezes_spent") or ())),
        checkpoints=None if checkpoints is None else tuple(map(_checkpoint_from, checkpoints)),
    )


def _checkpoint_text(at: Checkpoint) -> str:
    return f"{at.last.isoformat()} {at.length} {at.longest} {at.active_days} {at.spent}"


def _checkpoint_from(text: str) -> Checkpoint:
    last, length, longest, active_days, spent = text.split(" ")
    return Checkpoint(date.fromisoformat(last), int(length), int(longest), int(active_days), int(spent))


def _cover_from(attributes: dict[str, Any]) -> Cover:
    return Cover(
        freezes=net_freezes(
            (date.fromisoformat(each[:10]), int(each[10:])) for each in attributes.get("freezes") or ()
        ),
        pauses=tuple(
            (date.fromisoformat(each[:10]), date.fromisoformat(each[11:]))
            for each in attributes.get("pauses") or ()
        ),
        skipped=frozenset(map(date.fromisoformat, attributes.get("skipped_dates") or ())),
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
        "ledger_head": day.ledger_head,
        "created_at": day.created_at,
        "last_event_id": day.last_event_id,
        "passive_events": day.passive_events or None,
        "is_passive": None if day.is_active else True,
    }


def day_from(attributes: dict[str, Any]) -> Day:
    """Read a day's attributes."""
    return Day(
        user_id=attributes["user_id"],
        activity_date=date.fromisoformat(attributes["activity_date"]),
        first_event_id=attributes["first_event_id"],
        events_count=attributes["events_count"],
        points_earned=attributes["points_earned"],
        points_by_cap=attributes.get("points_by_cap") or attributes.get("points_by_type") or {},
        ledger_head=attributes["ledger_head"],
        created_at=attributes["created_at"],
        last_event_id=attributes.get("last_event_id", ""),
        passive_events=attributes.get("passive_events") or 0,
    )


def entry_item(entry: Entry) -> Item:
    """Return an entry as table attributes; only the head has `active`."""
    draft = entry.draft
    made = item(
        {
            "account_id": entry.account_id,
            "created_at": entry.created_at,
            "seq": entry.seq,
            "kind": draft.kind.value,
            "points": draft.points,
            "balance": entry.balance,
            "active": entry.active or None,
            "event_id": draft.event_id,
            "event_type": draft.event_type,
            "activity_date": draft.activity_date,
            "reward_id": draft.reward_id,
            "reverses": draft.reverses,
            "freeze": draft.freeze and draft.freeze.value,
            "freeze_date": draft.freeze_date,
            "rules_version": draft.rules_version,
            "cap": draft.cap and draft.cap.text,
            "is_passive": draft.is_passive or None,
            "reversed_by": entry.reversed_by,
            "applied_through": entry.applied_through or None,
        }
    )
    return {**made, "folded": {"B": pack(entry.folded)}} if entry.folded else made


def entry_from(stored: Item) -> Entry:
    """Read an entry."""
    attributes = plain(stored)
    folded = attributes.get("folded") or ()
    freeze = attributes.get("freeze")
    draft = Draft(
        kind=EntryKind(attributes["kind"]),
        points=attributes["points"],
        event_id=attributes.get("event_id"),
        event_type=attributes.get("event_type"),
        activity_date=attributes.get("activity_date"),
        reward_id=attributes.get("reward_id"),
        reverses=attributes.get("reverses"),
        freeze=FreezeNote(freeze) if freeze else None,
        freeze_date=attributes.get("freeze_date"),
        rules_version=attributes.get("rules_version"),
        cap=Cap.of(attributes.get("cap")),
        is_passive=bool(attributes.get("is_passive")),
    )
    return Entry(
        account_id=attributes["account_id"],
        created_at=attributes["created_at"],
        seq=attributes["seq"],
        balance=attributes["balance"],
        draft=draft,
        folded=tuple(unpack(folded["B"]) if isinstance(folded, dict) else from_texts(folded)),
        active=bool(attributes.get("active")),
        reversed_by=attributes.get("reversed_by"),
        applied_through=attributes.get("applied_through") or "",
    )
