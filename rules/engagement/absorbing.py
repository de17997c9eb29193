"""How ledger entries and events change a profile and its days (rules 2 to 8).

The ledger is the journal. A profile and its days are projections of it: `absorb` and `absorb_days` count
entries into them. An entry must be counted once only. `absorb_days` skips what a day's watermark already
covers; callers give `absorb` only entries newer than the profile's watermark.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from rules.days import UnknownZone, skipped_dates, unstamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.earning import cap_key
from rules.engagement.events import Event
from rules.engagement.goals.measures import with_measures
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind, FreezeNote
from rules.engagement.review import skews_seen, zones_seen
from rules.engagement.streaks import Cover, net_freezes
from rules.stream_places import newest

DATE_LENGTH = len("2026-05-01")
# What is older is kept together (adapters/engagement/goals). Little comes as late: a backfill, or what waited
# in a device (rule 16).
SETTLED_AFTER = timedelta(days=7)


def absorb_days(days: Mapping[date, Day | None], entries: Iterable[Entry]) -> dict[date, Day]:
    """Count entries into the days that they are of; returns the days that changed.

    An entry that is not newer than its day's watermark has been counted already, and is skipped.
    """
    changed: dict[date, Day] = {}
    for entry in entries:
        draft = entry.draft
        if draft.kind not in EARNING or draft.activity_date is None:
            continue
        when = date.fromisoformat(draft.activity_date)
        day = changed.get(when) or days.get(when)
        if day is None:
            if draft.kind is not EntryKind.EARN or draft.event_id is None:
                continue  # what is taken back was earned before, so there is no such ledger
            day = Day(entry.account_id, when, draft.event_id, 0, 0, {}, "", entry.created_at)
        if entry.created_at <= day.ledger_head:
            continue
        changed[when] = _with_entry(day, entry)
    return changed


def _with_entry(day: Day, entry: Entry) -> Day:
    draft = entry.draft
    first, last = _ends_with(day, draft)
    events = {EntryKind.EARN: 1, EntryKind.CLAWBACK: -1}.get(draft.kind, 0)
    kind = cap_key(draft.event_type or "", draft.cap)
    return Day(
        user_id=day.user_id,
        activity_date=day.activity_date,
        first_event_id=first,
        last_event_id=last,
        events_count=day.events_count + events,
        points_earned=day.points_earned + draft.points,
        points_by_cap={**day.points_by_cap, kind: day.points_by_cap.get(kind, 0) + draft.points},
        ledger_head=entry.created_at,
        created_at=day.created_at,
        passive_events=day.passive_events + events * draft.is_passive,
        lots=_with_lot(day.lots, draft),
        reversed_events=day.reversed_events + (events < 0 and not draft.is_passive),
        measures=with_measures(day.measures, draft.event_type or "", draft.measures, events),
    )


def _with_lot(lots: Mapping[str, int], draft: Draft) -> Mapping[str, int]:
    if draft.expires_on is None:
        return lots
    return {**lots, draft.expires_on: lots.get(draft.expires_on, 0) + draft.points}


def _ends_with(day: Day, draft: Draft) -> tuple[str, str]:
    """Return a day's first and last event with one more. Passive ones count while there are no others."""
    event_id = draft.event_id or ""
    if draft.kind is not EntryKind.EARN:
        return day.first_event_id, day.last_event_id
    if draft.is_passive == day.was_active:
        return (day.first_event_id, day.last_event_id) if draft.is_passive else (event_id, event_id)
    return min(day.first_event_id, event_id), max(day.last_event_id, event_id)


def absorb(profile: Profile, entries: Sequence[Entry]) -> Profile:
    """Count entries into the profile: balance, lifetime points, freezes. The streak stays as it is.

    entries: oldest first, all newer than the profile's watermark.
    """
    if not entries:
        return profile
    expiry, past_entry = profile.expiry, profile.past_entry
    for entry in entries:
        draft = entry.draft
        if draft.kind in EARNING and draft.expires_on:
            expiry = expiry.with_points(date.fromisoformat(draft.expires_on), draft.points)
        if draft.measures and _is_of_the_past(entry):
            past_entry = entry.created_at
        if draft.kind is EntryKind.REVERSE and draft.reverses:
            expiry = expiry.reopened(unstamp(draft.held_at or draft.reverses).date())
    earned = sum(entry.draft.points for entry in entries if entry.draft.kind in EARNING)
    return replace(
        profile,
        head=entries[-1].head,
        applied_through=entries[-1].applied_through,
        total_points=profile.total_points + earned,
        cover=with_freezes(profile.cover, (entry.draft for entry in entries)),
        expiry=expiry,
        past_entry=past_entry,
    )


def with_freezes(cover: Cover, drafts: Iterable[Draft]) -> Cover:
    """Count the freezes that entries grant and return into a cover."""
    changes = [
        (date.fromisoformat(each.freeze_date), 1 if each.freeze is FreezeNote.GRANTED else -1)
        for each in drafts
        if each.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED) and each.freeze_date
    ]
    return replace(cover, freezes=net_freezes([*cover.freezes, *changes])) if changes else cover


def _is_of_the_past(entry: Entry) -> bool:
    """Whether an entry counts for a date that readers may have settled already."""
    when = date.fromisoformat(entry.draft.activity_date or entry.created_at[:DATE_LENGTH])
    return when < unstamp(entry.created_at).date() - SETTLED_AFTER


def with_applied_through(entries: list[Entry], before: Profile, events: Sequence[Event]) -> list[Entry]:
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
    seen = skews_seen(zones_seen(profile, events), events)
    if at != profile.observed_at:
        seen = replace(seen, observed_zone=zone, observed_at=at)
    return with_skipped(seen, skipped)


def with_skipped(profile: Profile, dates: Collection[date]) -> Profile:
    """Return a profile for which these dates, too, are no misses: the user never had them."""
    skipped = profile.cover.skipped.union(dates)
    if skipped == profile.cover.skipped:
        return profile
    return replace(profile, cover=replace(profile.cover, skipped=skipped))


def _skipped(event: Event) -> frozenset[date]:
    try:
        return skipped_dates(event.zone)
    except UnknownZone:
        return frozenset()
