"""How events and commands change an account (rules 2 to 8).

The ledger is the journal; profile and days follow from it (rules/engagement/absorbing.py). `decide` also
repairs what a dead writer left: it counts in the pending entries first, by the same code as new ones.

Three things stand around that, each in a module of its own. Reviews of suspicious accounts (review.py) and
the hashes of the ledger's entries (proving/sealing.py) follow a decision and change nothing else of it.
Amnesties (amnesty/amnesties.py) say beforehand which dates are no misses.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime

from rules.days import EPOCH, stamp, unstamp
from rules.engagement.absorbing import (
    absorb,
    absorb_days,
    journalled_freezes,
    observe,
    with_applied_through,
    with_freezes,
    with_skipped,
)
from rules.engagement.account_state import (
    Account,
    Decision,
    History,
    NeedsHistory,
    Profile,
    is_active,
)
from rules.engagement.amnesty.amnesties import with_amnesties
from rules.engagement.earning import earnings
from rules.engagement.events import Event, is_moved_in
from rules.engagement.ledger import Draft, EntryKind, FreezeNote, append
from rules.engagement.placing import flown_over, place
from rules.engagement.review import released, with_review, with_zone_review
from rules.engagement.streak.active_dates import active_dates, lost_dates
from rules.engagement.streaks import Cover, Streak, advance, fold

TZ_CHANGES_KEPT_MAX = 10


def streak_after(
    old: Streak | None,
    cover: Cover,
    new_dates: Iterable[date],
    history: History | None,
    changed: Iterable[date] = (),
) -> Streak | None:
    """Return the streak with new dates added.

    history: active dates, if they were read. changed: dates already folded that may count differently now.
    Raises NeedsHistory if the past must be folded again and history is None.
    """
    dates = sorted(new_dates)
    if history is not None:
        return fold([*history.dates, *dates], cover, history.start)
    anew = [*changed, *(day for day in dates if old and day < old.last)]
    if anew:
        raise NeedsHistory(min(anew))
    for day in dates:
        old = advance(old, day, cover)
    return old


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


def decide(
    account: Account,
    events: Sequence[Event],
    now: datetime,
    commands: Sequence[Draft] = (),
    observed: Iterable[tuple[Event, date | None]] = (),
) -> Decision:
    """Apply events and commands to an account, and put it under review if they give a reason (rule 8).

    events: in no ledger entry yet. observed: events with the date of their entry, if any: what they claim is
    noted, which a dead writer may not have done. Raises NeedsHistory, or InsufficientBalance for a command.
    """
    observed = list(observed)
    decision = _apply(account, events, now, commands, [event for event, _ in observed])
    profile = with_review(decision, events, observed, now)
    return replace(decision, profile=touch(account.profile, profile, now))


def _apply(
    account: Account,
    events: Sequence[Event],
    now: datetime,
    commands: Sequence[Draft],
    observed: Sequence[Event],
) -> Decision:
    """Return what events and commands make of an account, by the rules alone.

    The profile has the version that it had before.
    """
    before, pending = account.profile, account.pending
    repaired, days = absorb(before, pending), absorb_days(account.days, pending)
    known = {**account.days, **days}
    events = place(events, known)
    earned, lost = earnings(events, known), lost_dates(known, pending, commands)
    opened = _opened_by([*(entry.draft for entry in pending), *earned])
    profile = with_skipped(observe(repaired, [*events, *observed]), flown_over(opened, known))
    profile = with_amnesties(profile, account.amnesties, _first_folded(account, events, lost))
    streak = _streak_with(account, events, with_freezes(profile.cover, commands), lost)
    drafts = [*commands, *freeze_drafts(journalled_freezes(before, pending), streak), *earned]
    arrival = max((unstamp(event.created_at) for event in events), default=EPOCH)
    entries = append(before.user_id, repaired.head, drafts, now, arrival) if drafts else []
    entries = with_applied_through(entries, repaired, events)
    changed = replace(absorb(profile, entries), streak=streak)
    if events and all(map(is_moved_in, events)):
        changed = replace(changed, backfilled=before.version + 1)
    return Decision(account, repaired.head, entries, days | absorb_days(known, entries), changed)


def _first_folded(account: Account, events: Iterable[Event], lost: Iterable[date]) -> date:
    """Return the first date that may count differently than before; date.max if there is none."""
    came = (event.activity_date for event in events if not event.is_passive)
    return min([*came, *active_dates(account.pending), *lost], default=date.max)


def _opened_by(drafts: Iterable[Draft]) -> Iterator[tuple[str, date]]:
    """Yield the events that make a date an active one, each with that date."""
    for draft in drafts:
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date and not draft.is_passive:
            yield draft.event_id, date.fromisoformat(draft.activity_date)


def _streak_with(
    account: Account, events: Iterable[Event], cover: Cover, lost: Collection[date]
) -> Streak | None:
    """Return the streak with the dates of pending entries and of these events added, under a cover.

    lost: dates that are active no more, but for these events.
    """
    # Days may hold what is pending, and the streak does not.
    pending = active_dates(account.pending).difference(lost)
    changed = [*pending, *lost, *_changed_before_the_last(account.profile, cover)]
    dates = _dates_new_to(account, events, lost) | pending
    history = account.history
    if history and lost:
        history = replace(history, dates=[day for day in history.dates if day not in lost])
    return streak_after(account.profile.streak, cover, dates, history, changed)


def _dates_new_to(account: Account, events: Iterable[Event], lost: Container[date]) -> set[date]:
    dates = {event.activity_date for event in events if not event.is_passive}
    return {day for day in dates if day in lost or not is_active(account.days.get(day))}


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


def touch(before: Profile, changed: Profile, now: datetime) -> Profile:
    """Return a changed profile as its next version; the one before if nothing has changed."""
    if changed == before:
        return before
    return replace(changed, version=before.version + 1, updated_at=stamp(now))


def change_timezone(profile: Profile, zone: str, now: datetime) -> Profile:
    """Set the user's zone (rule 8): changes are kept, and more than two in 24 hours flag a review."""
    if zone == profile.timezone:
        return profile
    changes = (*profile.tz_changes, (stamp(now), zone))[-TZ_CHANGES_KEPT_MAX:]
    changed = with_zone_review(replace(profile, timezone=zone, tz_changes=changes), now)
    return touch(profile, changed, now)


def release(profile: Profile, now: datetime) -> Profile:
    """End an account's review (rule 8)."""
    return touch(profile, released(profile, now), now)
