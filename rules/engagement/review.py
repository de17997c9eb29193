"""Which accounts an admin should review, and the evidence (docs/rules.md, rule 8).

Evidence is a zone that changes too often, an event that claims a date which it cannot have, too many flights
over the date line, and a device's clock that jumps (rule 16).
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta

from rules.days import EPOCH, UnknownZone, parse_moment, stamp, unstamp, zone
from rules.engagement.account_state import Profile, otherwise_skipped
from rules.engagement.events import APPS, Event, instant_of, stamp_of

WINDOW = timedelta(days=1)  # changes of zone and jumps of a clock are counted within it
CHANGES_MAX = 2
# Only pilots cross the date line to the west more often.
FLIGHTS_SPAN, FLIGHTS_MAX = timedelta(days=30), 3
EVIDENCE_KEPT_MAX = 5
# With this begins the reason why a nightly comparison doubts a ledger. No entry has it: nothing is appended
# to such a ledger.
LEDGER_DOUBT = "ledger and lake disagree"
TZ_CHANGES_KEPT_MAX = 10  # zones that the user has set
RECENT = timedelta(days=30)  # older changes of zone are in the ledger alone
# The zone that was seen first, and one change more than are allowed.
ZONES_KEPT_MAX = CHANGES_MAX + 2
# Two devices of one person may both have a wrong clock, but their clocks hardly differ by more than this.
JUMP = timedelta(hours=1)
JUMPS_MAX = 2
# The skew that was seen first, and one jump more than are allowed.
SKEWS_KEPT_MAX = JUMPS_MAX + 2
ZoneChanges = tuple[tuple[str, str], ...]


def with_review(
    before: Profile, after: Profile, events: Iterable[tuple[Event, Event]], now: datetime
) -> Profile:
    """Return a decision's profile, under review if the decision shows a reason.

    before, after: the decision's profiles. events: those that it applies, each as it came, with the date that
    it claimed, and with the date that it earns.
    """
    for event, dated in events:
        if dated.activity_date != event.activity_date:
            occurred = stamp_of(event.event_id)
            reason = (
                f"{occurred} claimed {event.activity_date} in {event.zone}, counts for {dated.activity_date}"
            )
            after = put_under_review(after, now, reason)
    after = with_clock_review(with_zone_review(after, now), now)
    skipped = otherwise_skipped(after)
    return with_flight_review(after, skipped, skipped - before.cover.skipped, now)


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


def is_in_doubt(profile: Profile) -> bool:
    """Whether a nightly comparison has put an account under review, because its ledger is in doubt."""
    return any(reason.startswith(LEDGER_DOUBT) for reason in profile.review_evidence)


def end_review(profile: Profile, now: datetime) -> Profile:
    """End a review. Earlier evidence is no reason for another one."""
    if not profile.tz_review:
        return profile
    return replace(
        profile,
        tz_review=False,
        review_since="",
        review_evidence=(),
        reviewed_since=profile.review_since,
        released_at=stamp(now),
    )


def was_under_review(profile: Profile, at: datetime) -> bool:
    """Whether an account was under review at an instant. Of ended reviews, the last one is known."""
    if not profile.tz_review and not profile.released_at:
        return False
    if profile.tz_review and profile.review_since < stamp(at):
        return True
    return profile.reviewed_since < stamp(at) <= profile.released_at


def note_zones(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note changes of the zone that events name, oldest first.

    Only a zone's offset counts: Europe/Berlin and +01:00 are the same in winter. An offset of 0 is ignored,
    because servers write it. An event that is older than the newest change is ignored, too.
    """
    seen = profile.zones_seen
    for event in sorted(events, key=lambda each: each.event_id):
        if not event.timezone or event.by_server:
            continue
        at, occurred = instant_of(event.event_id), stamp_of(event.event_id)
        offset = _offset(event.timezone, at)
        newest_at, newest_zone = seen[-1] if seen else ("", "")
        if offset and occurred >= newest_at and _offset(newest_zone, at) != offset:
            seen = recent_changes((*seen, (occurred, event.timezone)), ZONES_KEPT_MAX)
    return replace(profile, zones_seen=seen) if seen != profile.zones_seen else profile


def recent_changes(changes: ZoneChanges, most: int) -> ZoneChanges:
    """Return the newest changes of zone, at most so many: those of the last RECENT, and the one before them.

    changes: each with its stamp, oldest first. The last RECENT ends with the newest change.
    """
    since = unstamp(changes[-1][0]) - RECENT
    old = sum(unstamp(at) < since for at, _ in changes)
    return changes[max(0, old - 1) :][-most:]


def with_zone_review(profile: Profile, now: datetime) -> Profile:
    """Put an account under review if its zone changed more than twice in 24 hours.

    Changes that the user made and changes that events show count together.
    """
    changes = [(datetime.fromisoformat(at), zone_name) for at, zone_name in profile.tz_changes]
    changes += [(unstamp(at), zone_name) for at, zone_name in profile.zones_seen[1:]]
    names = _crowded_values(changes, _released_at(profile), CHANGES_MAX)
    if not names:
        return profile
    reason = f"{len(names)} changes of zone in 24 hours: {', '.join(names)}"
    return put_under_review(profile, now, reason[:200])


def _released_at(profile: Profile) -> datetime:
    """Return when the last review ended. What happened before is no evidence any more."""
    return datetime.fromisoformat(profile.released_at) if profile.released_at else EPOCH


def _crowded_values(changes: Iterable[tuple[datetime, str]], since: datetime, limit: int) -> list[str]:
    """Return the values of the newest WINDOW that has more changes after `since` than the limit; else []."""
    changes = sorted(change for change in changes if change[0] > since)
    for newest, _ in reversed(changes):
        values = [value for at, value in changes if newest - WINDOW < at <= newest]
        if len(values) > limit:
            return values
    return []


def with_flight_review(
    profile: Profile, skipped: Collection[date], new_skipped: Collection[date], now: datetime
) -> Profile:
    """Put an account under review if its flights left out more than three dates of any 30.

    Such a date is no miss and costs no freeze. So somebody who forges two zones would have to be active only
    every other day. skipped: the dates that the user never had. new_skipped: the new ones among them.
    """
    since = profile.released_at[:10]
    days = {day for day in skipped if day.isoformat() > since}
    for newest in sorted(days if new_skipped else ()):
        flights = sum(newest - FLIGHTS_SPAN < day <= newest for day in days)
        if flights > FLIGHTS_MAX and any(newest - FLIGHTS_SPAN < day <= newest for day in new_skipped):
            reason = f"more than {FLIGHTS_MAX} flights west over the date line in {FLIGHTS_SPAN.days} days"
            return put_under_review(profile, now, reason)
    return profile


def note_skews(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note jumps of the clock that dated the events: its error in minutes, and since when.

    The first error of a clock counts as a jump. An event that arrived before the newest jump is ignored.
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
    """Return the minutes that were added to an event's time; None if no device's clock dated it."""
    if event.device_time is not None:
        skew = parse_moment(event.occurred_at).utc - parse_moment(event.device_time).utc
        return round(skew / timedelta(minutes=1))
    return None if event.by_server or event.source != APPS else 0


def with_clock_review(profile: Profile, now: datetime) -> Profile:
    """Put an account under review if its clock jumped more than twice in 24 hours."""
    jumps = [(unstamp(at), minutes) for at, minutes in profile.skews_seen[1:]]
    minutes = _crowded_values(jumps, _released_at(profile), JUMPS_MAX)
    if not minutes:
        return profile
    reason = f"the clock jumped {len(minutes)} times in 24 hours, to {', '.join(minutes)} minutes"
    return put_under_review(profile, now, reason)


def _offset(name: str, at: datetime) -> timedelta | None:
    try:
        return at.astimezone(zone(name)).utcoffset()
    except (UnknownZone, OverflowError):
        return None
