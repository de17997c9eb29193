"""Which accounts a person should look at (docs/rules.md, rule 8), and why. A clock that is wrong by
something else each time is evidence, too (rule 16).
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta

from rules.days import EPOCH, UnknownZone, stamp, unstamp, zone
from rules.engagement.account_state import Decision, Profile
from rules.engagement.earnings import instant_of
from rules.engagement.events import APPS, Event, skew_between
from rules.engagement.ledger import applied_events

WINDOW = timedelta(days=1)
CHANGES_MAX = 2
# Nobody who is no pilot crosses the date line to the west more often.
FLIGHTS_SPAN, FLIGHTS_MAX = timedelta(days=30), 3
EVIDENCE_KEPT_MAX = 5
# The zone that was seen first, and one change more than are allowed.
ZONES_KEPT_MAX = CHANGES_MAX + 2
# Two devices of one person may both be wrong, but hardly by as much as this.
JUMP = timedelta(hours=1)
JUMPS_MAX = 2
# The skew that was seen first, and one jump more than are allowed.
SKEWS_KEPT_MAX = JUMPS_MAX + 2


def with_review(
    decision: Decision,
    events: Iterable[Event],
    observed: Iterable[tuple[Event, date | None]],
    now: datetime,
) -> Profile:
    """Return a decision's profile, under review if what the decision has seen gives a reason.

    events: those that the decision applies, with the dates that they claimed. observed: events with the date
    of their entry, if any.
    """
    before, after = decision.before.profile, decision.profile
    dates = applied_events(decision.entries)
    claims = [(event, dates[event.event_id][0]) for event in events]
    profile = with_claim_review(after, [*claims, *unreviewed_events(after, observed)], now)
    profile = with_clock_review(with_zone_review(profile, now), now)
    skipped = after.cover.skipped.difference(*(forgiven for _, forgiven in after.amnesties))
    return with_flight_review(profile, skipped, skipped - before.cover.skipped, now)


def put_under_review(profile: Profile, now: datetime, reason: str) -> Profile:
    """Put an account under review, with one more reason. The first one and the newest are kept."""
    if reason in profile.review_evidence:
        return profile
    first, later = profile.review_evidence[:1], profile.review_evidence[1:]
    return replace(
        profile,
        tz_review=True,
        review_since=profile.review_since or stamp(now),
        review_evidence=(*first, *(*later, reason)[1 - EVIDENCE_KEPT_MAX :]),
    )


def end_review(profile: Profile, now: datetime) -> Profile:
    """End a review. What was seen before is no reason for another one."""
    if not profile.tz_review:
        return profile
    return replace(profile, tz_review=False, review_since="", review_evidence=(), released_at=stamp(now))


def note_zones(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note changes of the zone that events name, oldest first; an offset of 0 is how servers write.

    Of a zone only the offset counts: Europe/Berlin and +01:00 are one in winter. An event that is older
    than the newest change is not looked at.
    """
    seen = profile.zones_seen
    for event in sorted(events, key=lambda each: each.event_id):
        if not event.timezone or event.by_server:
            continue
        at, place = instant_of(event.event_id), event.event_id[:27]
        offset = _offset(event.timezone, at)
        is_newer = not seen or (place >= seen[-1][0] and _offset(seen[-1][1], at) != offset)
        if offset and is_newer:
            seen = (*seen, (place, event.timezone))[-ZONES_KEPT_MAX:]
    return replace(profile, zones_seen=seen) if seen != profile.zones_seen else profile


def with_claim_review(profile: Profile, counted: Iterable[tuple[Event, date]], now: datetime) -> Profile:
    """Put an account under review for events that claim a date which they cannot have.

    counted: events, each with the date that it counts for.
    """
    for event, day in counted:
        if day != event.activity_date:
            text = f"{event.event_id[:27]} claimed {event.activity_date} in {event.zone}, counts for {day}"
            profile = put_under_review(profile, now, text)
    return profile


def unreviewed_events(
    profile: Profile, observed: Iterable[tuple[Event, date | None]]
) -> list[tuple[Event, date]]:
    """Return the events that have an entry, with its date, without what had arrived when a review ended."""
    seen_until = datetime.fromisoformat(profile.released_at) if profile.released_at else EPOCH
    return [(event, day) for event, day in observed if day and unstamp(event.created_at) > seen_until]


def with_zone_review(profile: Profile, now: datetime) -> Profile:
    """Put an account under review whose zone changed more than twice in 24 hours, as set and as observed."""
    since = datetime.fromisoformat(profile.released_at) if profile.released_at else None
    changes = [(datetime.fromisoformat(at), to) for at, to in profile.tz_changes]
    changes += [(unstamp(at), to) for at, to in profile.zones_seen[1:]]
    changes = sorted(change for change in changes if since is None or change[0] > since)
    for newest, _ in reversed(changes):
        near = [to for at, to in changes if newest - WINDOW < at <= newest]
        if len(near) > CHANGES_MAX:
            return put_under_review(
                profile, now, f"{len(near)} changes of zone in 24 hours: {', '.join(near)}"[:200]
            )
    return profile


def with_flight_review(
    profile: Profile, skipped: Collection[date], over: Collection[date], now: datetime
) -> Profile:
    """Put an account under review whose flights left out more than three dates of any 30.

    skipped: the dates that the user never had. over: those of them that are new. Each is no miss, as a
    freeze's is not, and costs nothing: so somebody who forges two zones could be active every other day
    alone.
    """
    since = profile.released_at[:10]
    days = {day for day in skipped if day.isoformat() > since}
    for newest in sorted(days if over else ()):
        flights = sum(newest - FLIGHTS_SPAN < day <= newest for day in days)
        if flights > FLIGHTS_MAX and any(newest - FLIGHTS_SPAN < day <= newest for day in over):
            text = f"more than {FLIGHTS_MAX} flights west over the date line in {FLIGHTS_SPAN.days} days"
            return put_under_review(profile, now, text)
    return profile


def note_skews(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note by how many minutes the clock was wrong that events came with, where that has jumped.

    Nothing is noted until it was wrong once. An event that arrived before the newest jump is not looked at.
    """
    seen = profile.skews_seen
    for event in sorted(events, key=lambda each: (each.created_at, each.event_id)):
        minutes = _skew_minutes(event)
        if minutes is None or not (seen or minutes):
            continue
        is_jump = not seen or abs(minutes - int(seen[-1][1])) * timedelta(minutes=1) > JUMP
        if is_jump and (not seen or event.created_at > seen[-1][0]):
            seen = (*seen, (event.created_at, str(minutes)))[-SKEWS_KEPT_MAX:]
    return replace(profile, skews_seen=seen) if seen != profile.skews_seen else profile


def _skew_minutes(event: Event) -> int | None:
    """Return what was added to an event's time, in minutes; None: it says nothing of a device's clock."""
    if event.device_time is not None:
        return round(skew_between(event.device_time, event.occurred_at) / timedelta(minutes=1))
    return None if event.by_server or event.source != APPS else 0


def with_clock_review(profile: Profile, now: datetime) -> Profile:
    """Put an account under review whose clock jumped more than twice in 24 hours."""
    since = datetime.fromisoformat(profile.released_at) if profile.released_at else EPOCH
    jumps = [(unstamp(at), minutes) for at, minutes in profile.skews_seen[1:]]
    jumps = [jump for jump in jumps if jump[0] > since]
    for newest, _ in reversed(jumps):
        near = [minutes for at, minutes in jumps if newest - WINDOW < at <= newest]
        if len(near) > JUMPS_MAX:
            reason = f"the clock jumped {len(near)} times in 24 hours, to {', '.join(near)} minutes"
            return put_under_review(profile, now, reason)
    return profile


def _offset(name: str, at: datetime) -> timedelta | None:
    try:
        return at.astimezone(zone(name)).utcoffset()
    except (UnknownZone, OverflowError):
        return None
