"""How ledger entries, events and commands change an account: its profile and its days (rules 2 to 8).

docs/rules.md has the rules. The ledger is the journal. A profile and its days are projections of it:
`profile_with_entries` and `days_with_entries` count entries into them. An entry must be counted once only.
`days_with_entries` skips what a day's watermark already covers; callers give `profile_with_entries` only
entries newer than the profile's watermark.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta

from rules.days import DAY, EPOCH, UnknownZone, skipped_dates, stamp, unstamp
from rules.engagement.account_settings import (
    setting_drafts,
    with_amnesty_dates,
    with_setting,
    with_skipped,
)
from rules.engagement.account_state import (
    Account,
    Amnesties,
    Day,
    Decision,
    History,
    NeedsHistory,
    Profile,
    is_active,
    otherwise_skipped,
)
from rules.engagement.bonuses import may_change_bonuses
from rules.engagement.earnings import assign_dates, earnings, flight_gap_dates
from rules.engagement.events import (
    NOTHING_APPLIED,
    Event,
    is_old_import,
    newest_position,
    with_measures,
)
from rules.engagement.ledger import (
    EARNING,
    EVER_EARNED,
    Draft,
    Entry,
    EntryKind,
    FreezeNote,
    active_dates,
    append_drafts,
)
from rules.engagement.lots import Expiry, holds_after
from rules.engagement.period_points import with_period_points
from rules.engagement.repairs import needless_repairs, repairs_after, return_of
from rules.engagement.review import (
    TZ_CHANGES_KEPT_MAX,
    note_skews,
    note_zones,
    recent_changes,
    with_review,
    with_zone_review,
)
from rules.engagement.streak import Cover, Streak, advance, fold, net_freezes

# Readers keep results for older dates (adapters/engagement/achievements). An entry for such a
# date becomes Profile.past_entry, so that they compute again. Such entries are few: of backfills, of events
# that waited in a device (rule 16), and of freezes that are given or taken back for a date of long ago.
PAST_AFTER = timedelta(days=7)
CHANGING = (FreezeNote.GRANTED, FreezeNote.REVOKED)  # they change which freezes there are
DATE_LENGTH = len("2026-05-01")


def decide(
    account: Account, events: Sequence[Event], now: datetime, commands: Sequence[Draft] = ()
) -> Decision:
    """Return what events and commands make of an account, with its amnesties and its review (rules 17 and 8).

    events: those in no ledger entry yet. commands: the entries of a command, which are written first.
    Raises NeedsHistory, or InsufficientBalance for a command.

    There are four profiles, in this order: `before`, as it is stored; `caught_up`, with the pending entries;
    `observed`, with the settings that events and amnesties change; `after`, which is `caught_up` with the new
    entries. What is observed becomes entries, and only from these it comes into `after`.
    """
    before = account.profile

    # 1. The pending entries count first, as if their writer had not died.
    caught_up = profile_with_entries(before, account.pending)
    caught_up_days = days_with_entries(account.days, account.pending)
    days = {**account.days, **caught_up_days}

    # 2. What the events earn: each a date, then points under the caps of that date.
    dated = assign_dates(events, days)
    earned = earnings(dated, days)
    event_dates = {event.activity_date for event in dated if not event.is_passive}
    lost_dates = _lost_dates(days, account.pending, commands)

    # 3. Which dates are no misses: those that zones, flights and amnesties leave out. Of `observed` only
    # settings and cover are used.
    observed = observe_events(caught_up, dated)
    gaps = flight_gap_dates(_active_events(account.pending, earned), days)
    # A short date needs no flight: the dates beside it may be less than 24 hours apart, and it is no miss.
    observed = with_skipped(observed, {day for day in gaps if not observed.cover.rest.is_short(day)})
    first_folded = min([*event_dates, *active_dates(account.pending), *lost_dates], default=date.max)
    observed = with_amnesties(observed, account.amnesties, first_folded)
    observed = with_review(caught_up, observed, list(zip(events, dated, strict=True)), now)

    # 4. Which repairs are given back: those whose date turns out to need none.
    returns = list[Draft]()
    if caught_up.repairs:
        needless = event_dates | active_dates(account.pending) | otherwise_skipped(observed)
        undone = [command.reverses for command in commands]
        returns = [return_of(each) for each in needless_repairs(caught_up.repairs, needless, undone)]

    # 5. The streak under all this, and which freezes it uses now.
    cover = with_freezes(observed.cover, [*commands, *returns])
    streak = _streak_with(account, event_dates, lost_dates, cover)
    freezes = freeze_drafts(journalled_freezes(before, account.pending), streak)

    # 6. The entries that say so.
    drafts = [*commands, *freezes, *earned, *returns, *setting_drafts(caught_up, observed)]
    arrival = max((unstamp(event.created_at) for event in dated), default=EPOCH)
    entries = append_drafts(before.user_id, caught_up.head, drafts, now, arrival) if drafts else []
    entries = _with_applied_through(entries, caught_up, dated)

    # 7. Days and profile with these entries. The streak was folded under the cover that they record.
    days_to_write = {**caught_up_days, **days_with_entries(days, entries)}
    after = replace(profile_with_entries(caught_up, entries), streak=streak)
    after = bump_version(before, after, now)
    if before.version == 0 and account.pending:
        # The profile was lost, or its first writer died before it wrote it. It comes back newer than every
        # version before, whose numbers nobody knows.
        after = replace(after, version=int(now.timestamp()))
    if dated and all(map(is_old_import, dated)):
        after = replace(after, backfilled=after.version)
    return Decision(account, caught_up.head, entries, days_to_write, after)


def decide_settings(account: Account, changed: Profile, now: datetime) -> Decision:
    """Return the decision by which an account gets other settings: they are entries.

    account: with nothing pending. changed: its profile with other settings, or with another alias,
    which is no entry. What else differs is not taken over.
    """
    before = account.profile
    drafts = setting_drafts(before, changed)
    entries = append_drafts(before.user_id, before.head, drafts, now) if drafts else []
    entries = _with_applied_through(entries, before, ())
    after = profile_with_entries(replace(before, alias=changed.alias), entries)
    return Decision(account, before.head, entries, {}, bump_version(before, after, now))


def _active_events(pending: Iterable[Entry], earned: Iterable[Draft]) -> list[tuple[str, date]]:
    """Return the events of entries and drafts that keep the streak: (event id, the date that it earns)."""
    drafts = (*(entry.draft for entry in pending), *earned)
    return [
        (draft.event_id, draft.day)
        for draft in drafts
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date and not draft.is_passive
    ]


def bump_version(before: Profile, changed: Profile, now: datetime) -> Profile:
    """Return a changed profile as its next version, or `before` itself if nothing has changed."""
    if changed == before:
        return before
    return replace(changed, version=before.version + 1, updated_at=stamp(now))


def change_timezone(profile: Profile, zone: str, now: datetime) -> Profile:
    """Set the user's zone (rule 8): changes are kept, and more than two in 24 hours flag a review."""
    if zone == profile.chosen_zone:
        return profile
    changes = recent_changes((*profile.tz_changes, (stamp(now), zone)), TZ_CHANGES_KEPT_MAX)
    return with_zone_review(replace(profile, chosen_zone=zone, tz_changes=changes), now)


def days_with_entries(days: Mapping[date, Day | None], entries: Iterable[Entry]) -> dict[date, Day]:
    """Count entries into their days; returns the days that changed.

    An entry that is not newer than its day's watermark has been counted already, and is skipped.
    """
    changed: dict[date, Day] = {}
    for entry in entries:
        draft = entry.draft
        if draft.kind not in EARNING or draft.activity_date is None:
            continue
        when = draft.day
        day = changed.get(when) or days.get(when)
        if day is None:
            if draft.kind is not EntryKind.EARN or draft.event_id is None:
                continue  # no ledger has this: only points that were earned are taken back
            day = Day(entry.account_id, when, draft.event_id, 0, 0, {}, "", entry.created_at)
        if entry.created_at <= day.watermark:
            continue
        changed[when] = _with_entry(day, entry)
    return changed


def _with_entry(day: Day, entry: Entry) -> Day:
    draft = entry.draft
    first, last = _ends_with(day, draft)
    events = {EntryKind.EARN: 1, EntryKind.CLAWBACK: -1}.get(draft.kind, 0)
    event_type, lots = draft.event_type or "", day.lots
    key = f"{event_type} {draft.cap.text}" if draft.cap else event_type
    if draft.expires_on is not None:
        lots = {**lots, draft.expires_on: lots.get(draft.expires_on, 0) + draft.points}
    return Day(
        user_id=day.user_id,
        activity_date=day.activity_date,
        first_event_id=first,
        last_event_id=last,
        events_count=day.events_count + events,
        points_earned=day.points_earned + draft.points,
        points_by_cap={**day.points_by_cap, key: day.points_by_cap.get(key, 0) + draft.points},
        watermark=entry.created_at,
        created_at=day.created_at,
        passive_events=day.passive_events + events * draft.is_passive,
        lots=lots,
        reversed_events=day.reversed_events + (events < 0 and not draft.is_passive),
        measures=with_measures(day.measures, event_type, draft.measures, events),
    )


def _ends_with(day: Day, draft: Draft) -> tuple[str, str]:
    """Return the ids of a day's first and last event, with a draft's.

    Once a date has been active, passive events no longer change them. The first active event takes the
    place of all passive ones.
    """
    event_id = draft.event_id or ""
    if draft.kind is not EntryKind.EARN or (draft.is_passive and day.was_active):
        return day.first_event_id, day.last_event_id
    if not draft.is_passive and not day.was_active:
        return event_id, event_id
    return min(day.first_event_id, event_id), max(day.last_event_id, event_id)


def _lost_dates(
    days: Mapping[date, Day | None], pending: Iterable[Entry], commands: Iterable[Draft]
) -> set[date]:
    """Return the dates that are no longer active, because their last event is reversed.

    days: with the pending entries counted in, and the commands not.
    """
    reversals = Counter(
        command.day
        for command in commands
        if command.kind is EntryKind.CLAWBACK and command.activity_date and not command.is_passive
    )
    pending_dates = {
        entry.draft.day
        for entry in pending
        if entry.draft.kind is EntryKind.CLAWBACK and entry.draft.activity_date
    }
    return {
        when
        for when in pending_dates | reversals.keys()
        if (day := days.get(when)) and day.events_count - day.passive_events <= reversals[when]
    }


def profile_with_entries(profile: Profile, entries: Sequence[Entry]) -> Profile:
    """Count entries into the profile: balance, points, freezes, settings. The streak stays as it is.

    entries: oldest first, all newer than the profile's watermark.
    """
    if not entries:
        return profile
    expiry, past_entry, repairs = profile.expiry, profile.past_entry, profile.repairs
    for entry in entries:
        draft = entry.draft
        if draft.kind is EntryKind.SETTING:
            profile = with_setting(profile, draft)
        if draft.timezone and draft.event_id and draft.event_id > profile.observed_at:
            profile = replace(profile, observed_zone=draft.timezone, observed_at=draft.event_id)
        if profile.holds:
            profile = replace(profile, holds=holds_after(profile.holds, draft))
        if draft.kind in EARNING and draft.expires_on:
            expiry = expiry.with_points(date.fromisoformat(draft.expires_on), draft.points)
        if draft.measures:
            counts_for = date.fromisoformat(draft.activity_date or entry.created_at[:DATE_LENGTH])
            is_of_the_past = counts_for < unstamp(entry.created_at).date() - PAST_AFTER
            past_entry = entry.created_at if is_of_the_past else past_entry
        if draft.freeze in CHANGING and draft.freeze_date:
            is_of_the_past = (
                date.fromisoformat(draft.freeze_date) < unstamp(entry.created_at).date() - PAST_AFTER
            )
            past_entry = entry.created_at if is_of_the_past else past_entry
        repairs = repairs_after(repairs, entry)
        if draft.kind is EntryKind.REVERSE and draft.reverses:
            # Spent points come back. So lots that expired since they were spent are due once more.
            expiry = expiry.reopened(unstamp(draft.held_at or draft.reverses).date())
    earned = sum(entry.draft.points for entry in entries if entry.draft.kind in EVER_EARNED)
    bonuses = sum(entry.draft.points for entry in entries if entry.draft.kind is EntryKind.BONUS)
    return replace(
        profile,
        head=entries[-1].head,
        applied_through=entries[-1].applied_through,
        total_points=profile.total_points + earned,
        bonus_points=profile.bonus_points + bonuses,
        cover=with_freezes(profile.cover, (entry.draft for entry in entries)),
        repairs=repairs,
        expiry=with_bonuses_due(profile, expiry, entries),
        past_entry=past_entry,
        period_points=with_period_points(profile.period_points, entries, profile.cover.rest.terms),
    )


def with_bonuses_due(profile: Profile, expiry: Expiry, entries: Iterable[Entry]) -> Expiry:
    """Return how far an account is settled, after entries. profile: says whether a book pays bonuses."""
    may_change = profile.pays_bonuses and any(may_change_bonuses(entry.draft) for entry in entries)
    return replace(expiry, bonuses_due=True) if may_change else expiry


def with_freezes(cover: Cover, drafts: Iterable[Draft]) -> Cover:
    """Count the freezes that entries grant and revoke into a cover."""
    changes = [
        (date.fromisoformat(draft.freeze_date), 1 if draft.freeze is FreezeNote.GRANTED else -1)
        for draft in drafts
        if draft.freeze in CHANGING and draft.freeze_date
    ]
    return replace(cover, freezes=net_freezes([*cover.freezes, *changes])) if changes else cover


def _with_applied_through(entries: list[Entry], before: Profile, events: Sequence[Event]) -> list[Entry]:
    """Return entries, with the newest stream position up to which all events are applied on the last one.

    If an account has entries and no such position, it never gets one: the positions of its earlier events are
    unknown. A blank account begins at NOTHING_APPLIED, even if its first entry is a setting.
    """
    applied = before.applied_through if before.head else NOTHING_APPLIED
    through = newest_position([applied, *(event.stream_position for event in events)])
    return [*entries[:-1], *(replace(entry, applied_through=through) for entry in entries[-1:])]


def observe_events(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note the zone that the newest event names, changes of zone, and the dates that zones skipped.

    The order of events does not matter, and observing an event twice changes nothing.
    """
    events = sorted(events, key=lambda event: event.event_id)
    zone, newest_id = profile.observed_zone, profile.observed_at
    skipped = frozenset[date]()
    for event in events:
        with suppress(UnknownZone):
            skipped |= skipped_dates(event.zone)
        if event.timezone and event.event_id > newest_id:
            zone, newest_id = event.timezone, event.event_id
    changed = note_skews(note_zones(profile, events), events)
    if newest_id != profile.observed_at:
        changed = replace(changed, observed_zone=zone, observed_at=newest_id)
    return with_skipped(changed, skipped)


def zone_at(profile: Profile, at: datetime) -> str:
    """Return the zone that decided at an instant which date it was for the user (rule 8).

    That is the zone that the user had set by then, else the one that events had named by then. If neither is
    known, it is the zone of today.
    """
    if set_by_user := [name for since, name in profile.tz_changes if datetime.fromisoformat(since) <= at]:
        return set_by_user[-1]
    from_events = [name for since, name in profile.zones_seen if since <= stamp(at)]
    if from_events and not profile.chosen_zone:
        return from_events[-1]
    return profile.zone


def with_amnesties(profile: Profile, amnesties: Amnesties, since: date) -> Profile:
    """Return a profile for which the dates of amnesties are neutral, and those of revoked ones are not.

    since: the first date that this decision folds in any case. An amnesty makes dates from `since` on
    neutral, and dates after the last active one. Only an amnesty that is applied by name makes earlier dates
    neutral, because that needs the reading of the past, which would be dear for each event.
    """
    if not amnesties.known:
        return profile
    dates_by_number = {number: frozenset(dates) for number, dates in profile.amnesties}
    otherwise = otherwise_skipped(profile)
    last_active = profile.streak.last if profile.streak else date.max  # without a streak only `since` counts
    for amnesty in amnesties.known:
        dates = dates_by_number.pop(amnesty.number, frozenset[date]())
        is_named = amnesty.number in amnesties.named
        # In zones that are ahead of UTC, the outage may have touched one date more than in UTC.
        is_past = amnesty.until.date() + DAY < min(since, last_active)
        is_for_all = not amnesty.is_listed and not is_past
        if amnesty.revoked_at or not (dates or is_named or is_for_all):
            continue
        new_dates = {
            day
            for day in amnesty.dates_in(zone_at(profile, amnesty.since), profile.day_starts)
            if is_named or day >= since or day > last_active
        }
        if dates := dates.union(new_dates) - otherwise:
            dates_by_number[amnesty.number] = dates
    in_order = tuple((number, tuple(sorted(dates))) for number, dates in sorted(dates_by_number.items()))
    return profile if in_order == profile.amnesties else with_amnesty_dates(profile, in_order)


def _streak_with(account: Account, event_dates: set[date], lost: set[date], cover: Cover) -> Streak | None:
    """Return the streak with the dates of pending entries and of active events added, under a cover.

    lost: dates whose last event was reversed; one of the new events may be on them.
    """
    profile, history = account.profile, account.history
    if lost and history is None:
        # A month may go, and a checkpoint that it has thinned out is one of the newest again.
        raise NeedsHistory(date.min)
    # The days that were read may have the pending entries counted in already. The streak does not have them,
    # or nobody knows it. So the past is folded.
    pending_dates = active_dates(account.pending) - lost
    new_dates = {day for day in event_dates if day in lost or not is_active(account.days.get(day))}
    cover_changes = [
        *(cover.skipped ^ profile.cover.skipped),
        *(since for since, _ in set(cover.freezes) ^ set(profile.cover.freezes)),
        *(first for first, _ in set(cover.pauses) ^ set(profile.cover.pauses)),
        *(since for since, _ in set(cover.rest.chosen) ^ set(profile.cover.rest.chosen)),
    ]
    streak = profile.streak
    changed = [*pending_dates, *(day for day in cover_changes if streak and day < streak.last)]
    if history and lost:
        history = replace(history, dates=[day for day in history.dates if day not in lost])
    return streak_after(streak, cover, new_dates | pending_dates, history, changed)


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
