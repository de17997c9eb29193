"""How ledger entries, events and commands change an account: its profile and its days (rules 2 to 8).

docs/rules.md has the rules. The ledger is the journal. A profile and its days are projections of it:
`profile_with_entries` and `days_with_entries` count entries into them. An entry must be counted once only.
`days_with_entries` skips what a day's watermark already covers; callers give `profile_with_entries` only
entries newer than the profile's watermark.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from rules.days import EPOCH, UnknownZone, skipped_dates, stamp, unstamp
from rules.engagement.account_state import Account, Day, Decision, History, NeedsHistory, Profile, is_active
from rules.engagement.amnesty import with_amnesties
from rules.engagement.assigned_dates import assign_dates, flight_gap_dates
from rules.engagement.earnings import cap_key, earnings
from rules.engagement.events import Event, is_old_import, newest_position, with_measures
from rules.engagement.ledger import (
    EARNING,
    Draft,
    Entry,
    EntryKind,
    FreezeNote,
    active_dates,
    append_drafts,
)
from rules.engagement.review import end_review, note_skews, note_zones, with_review, with_zone_review
from rules.engagement.streak import Cover, Streak, advance, fold, net_freezes

# Readers keep results for older dates (adapters/engagement/achievements). An entry for such a
# date becomes Profile.past_entry, so that they compute again. Such entries are few: of backfills, and of
# events that waited in a device (rule 16).
PAST_AFTER = timedelta(days=7)
TZ_CHANGES_KEPT_MAX = 10
DATE_LENGTH = len("2026-05-01")


@dataclass(frozen=True, slots=True)
class _Observation:
    """An account with its pending entries and new events, before its streak is folded."""

    caught_up: Profile  # the stored profile with the pending entries counted in
    profile: Profile  # the same, with the zones, clocks and flights that events show
    days: Mapping[date, Day | None]  # all days that were read, with the pending entries counted in
    changed_days: Mapping[date, Day]  # the days that the pending entries changed
    events: Sequence[Event]  # the events to apply, each with the date that it earns
    earned: Sequence[Draft]  # the entries that the events earn
    lost: Collection[date]  # dates whose last event was reversed; one of the new events may be on them

    def first_folded(self, account: Account) -> date:
        """Return the first date that may count differently than before; date.max if there is none."""
        event_dates = (event.activity_date for event in self.events if not event.is_passive)
        return min([*event_dates, *active_dates(account.pending), *self.lost], default=date.max)


def decide(
    account: Account,
    events: Sequence[Event],
    now: datetime,
    commands: Sequence[Draft] = (),
    delivered: Iterable[tuple[Event, date | None]] = (),
) -> Decision:
    """Return what events and commands make of an account, with its amnesties and its review (rules 17 and 8).

    events: those in no ledger entry yet. delivered: all events that are delivered now, each with the date of
    its ledger entry, or None if it has none. The zones and clocks that they claim are noted, because a writer
    that died may have written the entry without noting them.

    Raises NeedsHistory, or InsufficientBalance for a command.
    """
    delivered = list(delivered)
    observation = _observe(account, events, commands, [event for event, _ in delivered])
    first_folded = observation.first_folded(account)
    profile = with_amnesties(observation.profile, account.amnesties, first_folded)
    decision = _apply(account, replace(observation, profile=profile), commands, now)
    profile = with_review(decision, events, delivered, now)
    return replace(decision, profile=bump_version(account.profile, profile, now))


def _observe(
    account: Account, events: Sequence[Event], commands: Sequence[Draft], delivered: Sequence[Event]
) -> _Observation:
    """Count the pending entries in, and give the events their dates. The events are not counted in yet."""
    caught_up = profile_with_entries(account.profile, account.pending)
    changed_days = days_with_entries(account.days, account.pending)
    days = {**account.days, **changed_days}
    events = assign_dates(events, days)
    earned = earnings(events, days)
    active_events = _active_events([*(entry.draft for entry in account.pending), *earned])
    profile = observe_events(caught_up, [*events, *delivered])
    profile = with_skipped(profile, flight_gap_dates(active_events, days))
    lost = lost_dates(days, account.pending, commands)
    return _Observation(caught_up, profile, days, changed_days, events, earned, lost)


def _apply(account: Account, observation: _Observation, commands: Sequence[Draft], now: datetime) -> Decision:
    """Return the decision about events and commands. Its profile still has the version of the stored one."""
    streak = _streak_with(account, observation, with_freezes(observation.profile.cover, commands))
    freezes = freeze_drafts(journalled_freezes(account.profile, account.pending), streak)
    drafts = [*commands, *freezes, *observation.earned]
    events = observation.events
    arrival = max((unstamp(event.created_at) for event in events), default=EPOCH)
    user, head = account.profile.user_id, observation.caught_up.head
    entries = append_drafts(user, head, drafts, now, arrival) if drafts else []
    entries = with_applied_through(entries, observation.caught_up, events)
    profile = replace(profile_with_entries(observation.profile, entries), streak=streak)
    if events and all(map(is_old_import, events)):
        profile = replace(profile, backfilled=account.profile.version + 1)
    days = {**observation.changed_days, **days_with_entries(observation.days, entries)}
    return Decision(account, head, entries, days, profile)


def bump_version(before: Profile, changed: Profile, now: datetime) -> Profile:
    """Return a changed profile as its next version, or `before` itself if nothing has changed."""
    if changed == before:
        return before
    return replace(changed, version=before.version + 1, updated_at=stamp(now))


def change_timezone(profile: Profile, zone: str, now: datetime) -> Profile:
    """Set the user's zone (rule 8): changes are kept, and more than two in 24 hours flag a review."""
    if zone == profile.timezone:
        return profile
    changes = (*profile.tz_changes, (stamp(now), zone))[-TZ_CHANGES_KEPT_MAX:]
    changed = with_zone_review(replace(profile, timezone=zone, tz_changes=changes), now)
    return bump_version(profile, changed, now)


def release_account(profile: Profile, now: datetime) -> Profile:
    """End an account's review (rule 8)."""
    return bump_version(profile, end_review(profile, now), now)


def days_with_entries(days: Mapping[date, Day | None], entries: Iterable[Entry]) -> dict[date, Day]:
    """Count entries into their days; returns the days that changed.

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
                continue  # no ledger has this: only points that were earned are taken back
            day = Day(entry.account_id, when, draft.event_id, 0, 0, {}, "", entry.created_at)
        if entry.created_at <= day.ledger_head:
            continue
        changed[when] = _with_entry(day, entry)
    return changed


def _with_entry(day: Day, entry: Entry) -> Day:
    draft = entry.draft
    first, last = _ends_with(day, draft)
    events = {EntryKind.EARN: 1, EntryKind.CLAWBACK: -1}.get(draft.kind, 0)
    key = cap_key(draft.event_type or "", draft.cap)
    return Day(
        user_id=day.user_id,
        activity_date=day.activity_date,
        first_event_id=first,
        last_event_id=last,
        events_count=day.events_count + events,
        points_earned=day.points_earned + draft.points,
        points_by_cap={**day.points_by_cap, key: day.points_by_cap.get(key, 0) + draft.points},
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
    """Return the ids of a day's first and last event, with a draft's.

    Once a date has been active, passive events no longer change them. The first active event takes the
    place of all passive ones.
    """
    event_id = draft.event_id or ""
    if draft.kind is not EntryKind.EARN:
        return day.first_event_id, day.last_event_id
    if draft.is_passive and day.was_active:
        return day.first_event_id, day.last_event_id
    if not draft.is_passive and not day.was_active:
        return event_id, event_id
    return min(day.first_event_id, event_id), max(day.last_event_id, event_id)


def lost_dates(
    days: Mapping[date, Day | None], pending: Iterable[Entry], commands: Iterable[Draft]
) -> set[date]:
    """Return the dates that are no longer active, because their last event is reversed.

    days: with the pending entries counted in, and the commands not.
    """
    reversals = Counter(
        date.fromisoformat(command.activity_date)
        for command in commands
        if command.kind is EntryKind.CLAWBACK and command.activity_date and not command.is_passive
    )
    pending_dates = {
        date.fromisoformat(entry.draft.activity_date)
        for entry in pending
        if entry.draft.kind is EntryKind.CLAWBACK and entry.draft.activity_date
    }
    return {
        when
        for when in pending_dates | reversals.keys()
        if (day := days.get(when)) and day.events_count - day.passive_events <= reversals[when]
    }


def profile_with_entries(profile: Profile, entries: Sequence[Entry]) -> Profile:
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
            # Spent points come back. So lots that expired since they were spent are due once more.
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
        (date.fromisoformat(draft.freeze_date), 1 if draft.freeze is FreezeNote.GRANTED else -1)
        for draft in drafts
        if draft.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED) and draft.freeze_date
    ]
    return replace(cover, freezes=net_freezes([*cover.freezes, *changes])) if changes else cover


def _is_of_the_past(entry: Entry) -> bool:
    """Whether an entry counts for a date for which readers may have kept a result."""
    when = date.fromisoformat(entry.draft.activity_date or entry.created_at[:DATE_LENGTH])
    return when < unstamp(entry.created_at).date() - PAST_AFTER


def with_applied_through(entries: list[Entry], before: Profile, events: Sequence[Event]) -> list[Entry]:
    """Return entries, with the newest stream position up to which all events are applied on the last one.

    If an account has entries and no such position, it never gets one: the positions of its earlier events are
    unknown.
    """
    is_known = bool(before.applied_through) or before.head is None
    positions = [*filter(None, [before.applied_through]), *(event.stream_position for event in events)]
    through = newest_position(positions) if is_known and positions else ""
    return [*entries[:-1], *(replace(entry, applied_through=through) for entry in entries[-1:])]


def observe_events(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note the zone that the newest event names, changes of zone, and the dates that zones skipped.

    The order of events does not matter, and observing an event twice changes nothing.
    """
    events = sorted(events, key=lambda event: event.event_id)
    zone, newest_id = profile.observed_zone, profile.observed_at
    skipped = profile.cover.skipped
    for event in events:
        skipped |= _skipped_dates(event)
        if event.timezone and event.event_id > newest_id:
            zone, newest_id = event.timezone, event.event_id
    changed = note_skews(note_zones(profile, events), events)
    if newest_id != profile.observed_at:
        changed = replace(changed, observed_zone=zone, observed_at=newest_id)
    return with_skipped(changed, skipped)


def with_skipped(profile: Profile, dates: Collection[date]) -> Profile:
    """Return a profile for which these dates are no misses either: the user never had them."""
    skipped = profile.cover.skipped.union(dates)
    if skipped == profile.cover.skipped:
        return profile
    return replace(profile, cover=replace(profile.cover, skipped=skipped))


def _skipped_dates(event: Event) -> frozenset[date]:
    try:
        return skipped_dates(event.zone)
    except UnknownZone:
        return frozenset()


def _active_events(drafts: Iterable[Draft]) -> Iterator[tuple[str, date]]:
    """Yield the events that make a date an active one, each with that date."""
    for draft in drafts:
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date and not draft.is_passive:
            yield draft.event_id, date.fromisoformat(draft.activity_date)


def _streak_with(account: Account, observation: _Observation, cover: Cover) -> Streak | None:
    """Return the streak with the dates of pending entries and of the events added, under a cover."""
    lost = observation.lost
    # The days that were read may have the pending entries counted in already. The streak does not have them.
    pending_dates = active_dates(account.pending).difference(lost)
    changed = [*pending_dates, *lost, *_changed_before_the_last(account.profile, cover)]
    event_dates = {event.activity_date for event in observation.events if not event.is_passive}
    new_dates = {day for day in event_dates if day in lost or not is_active(account.days.get(day))}
    history = account.history
    if history and lost:
        history = replace(history, dates=[day for day in history.dates if day not in lost])
    return streak_after(account.profile.streak, cover, new_dates | pending_dates, history, changed)


def _changed_before_the_last(profile: Profile, cover: Cover) -> list[date]:
    """Return the dates before the streak's last active one from which a cover differs from the profile's."""
    if profile.streak is None or cover == profile.cover:
        return []
    changed = [
        *(cover.skipped ^ profile.cover.skipped),
        *(since for since, _ in set(cover.freezes) ^ set(profile.cover.freezes)),
        *(first for first, _ in set(cover.pauses) ^ set(profile.cover.pauses)),
    ]
    return [day for day in changed if day < profile.streak.last]


def streak_after(
    streak: Streak | None,
    cover: Cover,
    new_dates: Iterable[date],
    history: History | None,
    changed: Iterable[date] = (),
) -> Streak | None:
    """Return a streak with new dates added.

    history: active dates, if they were read. changed: dates already folded that may count differently now.
    Raises NeedsHistory if the past must be folded again and history is None.
    """
    dates = sorted(new_dates)
    if history is not None:
        return fold([*history.dates, *dates], cover, history.start)
    refolded = [*changed, *(day for day in dates if streak and day < streak.last)]
    if refolded:
        raise NeedsHistory(min(refolded))
    for day in dates:
        streak = advance(streak, day, cover)
    return streak


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


def freeze_drafts(journalled: set[date], streak: Streak | None) -> list[Draft]:
    """Return the entries that make the ledger agree with the freezes that the streak uses now.

    journalled: the dates that a freeze covers according to the ledger. Refunds come first, because the freeze
    that one date gives back may be spent on another.
    """
    spent = set(streak.spent if streak else ())
    refunds = [
        Draft(EntryKind.REVERSE, 0, freeze=FreezeNote.REFUNDED, freeze_date=day.isoformat())
        for day in sorted(journalled - spent)
    ]
    return refunds + [
        Draft(EntryKind.ADJUST, 0, freeze=FreezeNote.SPENT, freeze_date=day.isoformat())
        for day in sorted(spent - journalled)
    ]
