"""How ledger entries and events change a profile and its days (rules 2 to 8).

The ledger is the journal. A profile and its days are projections of it: `absorb` and `absorb_days` count
entries into them. An entry must be counted once only. `absorb_days` skips what a day's watermark already
covers; callers give `absorb` only entries newer than the profile's watermark.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from rules.days import UnknownZone, skipped_dates
from rules.engagement.account_state import Day, Profile
from rules.engagement.earning import cap_key
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote
from rules.engagement.review import zones_seen
from rules.engagement.streaks import net_freezes
from rules.stream_places import newest


def absorb_days(days: Mapping[date, Day | None], entries: Iterable[Entry]) -> dict[date, Day]:
    """Count EARN entries into their days; returns the days that changed.

    An entry that is not newer than its day's watermark has been counted already, and is skipped.
    """
    changed: dict[date, Day] = {}
    for entry in entries:
        draft = entry.draft
        if draft.kind is not EntryKind.EARN or draft.activity_date is None or draft.event_id is None:
            continue
        when = date.fromisoformat(draft.activity_date)
        day = changed.get(when) or days.get(when)
        if day is None:
            day = Day(entry.account_id, when, draft.event_id, 0, 0, {}, "", entry.created_at)
        if entry.created_at <= day.ledger_head:
            continue
        changed[when] = _with_entry(day, entry)
    return changed


def _with_entry(day: Day, entry: Entry) -> Day:
    draft = entry.draft
    first, last = _ends_with(day, draft)
    kind = cap_key(draft.event_type or "", draft.cap)
    return Day(
        user_id=day.user_id,
        activity_date=day.activity_date,
        first_event_id=first,
        last_event_id=last,
        events_count=day.events_count + 1,
        points_earned=day.points_earned + draft.points,
        points_by_cap={**day.points_by_cap, kind: day.points_by_cap.get(kind, 0) + draft.points},
        ledger_head=entry.created_at,
        created_at=day.created_at,
        passive_events=day.passive_events + draft.is_passive,
    )


def _ends_with(day: Day, draft: Draft) -> tuple[str, str]:
    """Return a day's first and last event with one more. Passive ones count while there are no others."""
    event_id = draft.event_id or ""
    if day.events_count and draft.is_passive == day.is_active:
        return (day.first_event_id, day.last_event_id) if draft.is_passive else (event_id, event_id)
    return min(day.first_event_id, event_id), max(day.last_event_id, event_id)


def active_dates(entries: Iterable[Entry]) -> set[date]:
    """Return the dates that entries make active ones."""
    drafts = (entry.draft for entry in entries)
    return {
        date.fromisoformat(each.activity_date)
        for each in drafts
        if each.activity_date and not each.is_passive
    }


def absorb(profile: Profile, entries: Sequence[Entry]) -> Profile:
    """Count entries into the profile: balance, lifetime points, freezes. The streak stays as it is.

    entries: oldest first, all newer than the profile's watermark.
    """
    if not entries:
        return profile
    freezes = list(profile.cover.freezes)
    for entry in entries:
        draft = entry.draft
        if draft.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED) and draft.freeze_date:
            change = 1 if draft.freeze is FreezeNote.GRANTED else -1
            freezes.append((date.fromisoformat(draft.freeze_date), change))
    earned = sum(entry.draft.points for entry in entries if entry.draft.kind is EntryKind.EARN)
    return replace(
        profile,
        head=entries[-1].head,
        applied_through=entries[-1].applied_through,
        total_points=profile.total_points + earned,
        cover=replace(profile.cover, freezes=net_freezes(freezes)),
    )


def reaching(entries: list[Entry], before: Profile, events: Sequence[Event]) -> list[Entry]:
    """Return entries, the last of which says how far into the stream all events are applied with it.

    Once that is not known of an account it stays so: nobody knows where the events of before stand.
    """
    is_known = bool(before.applied_through) or before.head is None
    places = [*filter(None, [before.applied_through]), *(event.place for event in events)]
    through = newest(places) if is_known and places else ""
    return [*entries[:-1], *(replace(each, applied_through=through) for each in entries[-1:])]


def journalled_freezes(profile: Profile, pending: Iterable[Entry]) -> set[date]:
    """Return the dates that a freeze covers according to the ledger.

    These are the dates in the profile's streak, changed by the pending entries.
    """
    spent = set(profile.streak.spent if profile.streak else ())
    for entry in pending:
        if entry.draft.freeze_date and entry.draft.freeze is FreezeNote.SPENT:
            spent.add(date.fromisoformat(entry.draft.freeze_date))
        elif entry.draft.freeze_date and entry.draft.freeze is FreezeNote.REFUNDED:
            spent.discard(date.fromisoformat(entry.draft.freeze_date))
    return spent


def observe(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note the zone that the newest event names, changes of zone, and the dates that zones skipped.

    The order of events does not matter, and observing an event twice changes nothing.
    """
    events = sorted(events, key=lambda each: each.event_id)
    zone, at = profile.observed_zone, profile.observed_at
    skipped = profile.cover.skipped
    for event in events:
        skipped |= _skipped(event)
        if event.timezone and event.event_id > at:
            zone, at = event.timezone, event.event_id
    seen = zones_seen(profile, events)
    if at == profile.observed_at and skipped == profile.cover.skipped:
        return seen
    return replace(seen, observed_zone=zone, observed_at=at, cover=replace(profile.cover, skipped=skipped))


def _skipped(event: Event) -> frozenset[date]:
    try:
        return skipped_dates(event.zone)
    except UnknownZone:
        return frozenset()
