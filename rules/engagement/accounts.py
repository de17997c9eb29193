"""How events and commands change an account (rules 2 to 8).

The ledger is the journal; profile and days follow from it (rules/engagement/absorbing.py). `decide` also
repairs what a dead writer left: it counts in the pending entries first, by the same code as new ones.
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
    reaching,
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
from rules.engagement.clocks.clock_jumps import with_clock_review
from rules.engagement.earning import earnings
from rules.engagement.events import Event, is_moved_in
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, append
from rules.engagement.placing import flown_over, place
from rules.engagement.proving.sealing import sealed
from rules.engagement.review import (
    not_seen_by_an_admin,
    released,
    with_claim_review,
    with_flight_review,
    with_zone_review,
)
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
    """Apply events and commands to an account.

    events: in no ledger entry yet. observed: events with the date of their entry, if any: what they claim is
    noted, which a dead writer may not have done. Raises NeedsHistory, or InsufficientBalance for a command.
    """
    before = account.profile
    repaired = absorb(before, account.pending)
    days = absorb_days(account.days, account.pending)
    known = {**account.days, **days}
    claimed, events = events, place(events, known)
    profile = _reviewed(repaired, zip(claimed, events, strict=True), observed, now)
    profile = _flown(profile, flown_over(_placed(account.pending, events), known), now)
    earned, lost = earnings(events, known), lost_dates(known, account.pending, commands)
    profile = with_amnesties(profile, account.amnesties, _first_folded(account, events, lost))
    streak = _streak_with(account, events, absorb(profile, _unplaced(before.user_id, commands)).cover, lost)
    freezes = freeze_drafts(journalled_freezes(before, account.pending), streak)
    drafts = [*commands, *freezes, *earned]
    if not drafts and not account.pending:
        return Decision(account, before.head, (), days, touch(before, replace(profile, streak=streak), now))
    arrival = max((unstamp(event.created_at) for event in events), default=EPOCH)
    entries = append(before.user_id, repaired.head, drafts, now, arrival) if drafts else []
    entries = reaching(sealed(entries, repaired.head, account.salt), repaired, events)
    days |= absorb_days(known, entries)
    changed = replace(absorb(profile, entries), streak=streak)
    after = touch(before, changed, now)
    if events and all(map(is_moved_in, events)):
        after = replace(after, backfilled=after.version)
    return Decision(account, repaired.head, entries, days, after)


def _first_folded(account: Account, events: Iterable[Event], lost: Iterable[date]) -> date:
    """Return the first date that may count differently than before; date.max if there is none."""
    came = (event.activity_date for event in events if not event.is_passive)
    return min([*came, *active_dates(account.pending), *lost], default=date.max)


def _placed(pending: Iterable[Entry], events: Iterable[Event]) -> Iterator[tuple[str, date]]:
    """Yield events with the dates that they earn, also of entries that a dead writer has not counted in."""
    for draft in (entry.draft for entry in pending):
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date and not draft.is_passive:
            yield draft.event_id, date.fromisoformat(draft.activity_date)
    yield from ((event.event_id, event.activity_date) for event in events if not event.is_passive)


def _flown(profile: Profile, over: set[date], now: datetime) -> Profile:
    looked_at = with_flight_review(profile, over - profile.cover.skipped, now)
    skipped = profile.cover.skipped | over
    return replace(looked_at, cover=replace(profile.cover, skipped=skipped)) if over else profile


def _reviewed(
    profile: Profile,
    placed: Iterable[tuple[Event, Event]],
    observed: Iterable[tuple[Event, date | None]],
    now: datetime,
) -> Profile:
    """Note zones; put the account under review for impossible dates, and for zones that change too often.

    placed: events as they came, and with the dates that they count for.
    """
    counted, observed = [(came, event.activity_date) for came, event in placed], list(observed)
    seen = observe(profile, [event for event, _ in (*counted, *observed)])
    claims = [*counted, *not_seen_by_an_admin(profile, observed)]
    return with_clock_review(with_zone_review(with_claim_review(seen, claims, now), now), now)


def _unplaced(user_id: str, commands: Sequence[Draft]) -> list[Entry]:
    """Return the commands that change freezes as entries without a place, to see the freezes after them."""
    return [Entry(user_id, "", 0, 0, draft) for draft in commands if draft.freeze]


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
