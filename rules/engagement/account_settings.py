"""Settings of an account as ledger entries: what changes a streak, or what can be spent, and earns nothing.

Examples are zones, pauses, reviews and holds. `setting_drafts` returns the entries that lead from one profile
to another. `with_setting` counts such an entry in. So a profile follows from its ledger (rule 6). All values
are texts that an operator can read: `2026-03-01/2026-03-14` is a pause.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TypeVar

from rules.days import EPOCH, unstamp
from rules.engagement.account_state import Profile, otherwise_skipped
from rules.engagement.board_settings import BoardSetting, with_settings
from rules.engagement.ledger import Draft, EntryKind, Setting
from rules.engagement.lots import Hold, holds_without
from rules.engagement.rest_days import choice_of_text, choice_text
from rules.engagement.review import (
    SKEWS_KEPT_MAX,
    TZ_CHANGES_KEPT_MAX,
    ZONES_KEPT_MAX,
    end_review,
    put_under_review,
    recent_changes,
)
from rules.engagement.streak import Checkpoint

Value = TypeVar("Value")
AmnestyDates = tuple[tuple[int, tuple[date, ...]], ...]  # of each amnesty: its number, and neutral dates


def setting_drafts(before: Profile, after: Profile) -> list[Draft]:
    """Return the entries that set what differs between two profiles of one account; none if nothing does."""
    changes = [
        *_zone_changes(before, after),
        *_cover_changes(before, after),
        *_review_changes(before, after),
        *((Setting.BOARDS, each.text) for each in after.board_settings if each not in before.board_settings),
        *_hold_changes(before, after),
    ]
    return [Draft(EntryKind.SETTING, 0, setting=setting, set_to=text) for setting, text in changes]


def _zone_changes(before: Profile, after: Profile) -> Iterator[tuple[Setting, str]]:
    for setting, old, new in (
        (Setting.ZONE, before.tz_changes, after.tz_changes),
        (Setting.ZONE_SEEN, before.zones_seen, after.zones_seen),
        (Setting.CLOCK, before.skews_seen, after.skews_seen),
    ):
        for at, to in appended(old, new):
            yield setting, f"{at} {to}"


def _cover_changes(before: Profile, after: Profile) -> Iterator[tuple[Setting, str]]:
    for first, last in sorted(set(after.cover.pauses) - set(before.cover.pauses)):
        yield Setting.PAUSE, f"{first}/{last}"
    for since, weekdays in after.cover.rest.chosen:
        if (since, weekdays) not in before.cover.rest.chosen:
            yield Setting.REST_DAYS, choice_text(since, weekdays)
    if skipped := otherwise_skipped(after) - otherwise_skipped(before):
        yield Setting.SKIPPED, " ".join(map(str, sorted(skipped)))
    if with_skipped(before, skipped).amnesties != after.amnesties:
        yield Setting.AMNESTIES, ";".join(amnesty_text(number, dates) for number, dates in after.amnesties)
    if after.cover.opening and after.cover.opening != before.cover.opening:
        yield Setting.OPENING, after.cover.opening.text


def _review_changes(before: Profile, after: Profile) -> Iterator[tuple[Setting, str]]:
    if after.released_at != before.released_at:
        before = end_review(before, unstamp(after.released_at))
        yield Setting.RELEASE, f"{after.released_at} {after.reviewed_since}".rstrip()
    for reason in after.review_evidence:
        if reason not in before.review_evidence:
            yield Setting.REVIEW, f"{after.review_since} {reason}"


def _hold_changes(before: Profile, after: Profile) -> Iterator[tuple[Setting, str]]:
    for hold in before.holds:
        if hold not in after.holds:
            yield Setting.HOLD_ENDED, hold.hold_id
    for hold in after.holds:
        if hold not in before.holds:
            yield Setting.HOLD, hold.text


def appended(before: Sequence[Value], after: Sequence[Value]) -> Sequence[Value]:
    """Return what was appended to a list of which only the newest elements are kept."""
    for kept in range(min(len(before), len(after)), 0, -1):
        if before[-kept:] == after[:kept]:
            return after[kept:]
    return after


def with_setting(profile: Profile, draft: Draft) -> Profile:  # noqa: C901, PLR0911, PLR0912 (a case for each)
    """Count a SETTING entry into a profile. Raises ValueError for a text that setting_drafts never wrote."""
    text = draft.set_to or ""
    at, _, rest = text.partition(" ")
    cover = profile.cover
    match draft.setting:
        case Setting.ZONE:
            changes = recent_changes((*profile.tz_changes, (at, rest)), TZ_CHANGES_KEPT_MAX)
            return replace(profile, chosen_zone=rest, tz_changes=changes)
        case Setting.ZONE_SEEN:
            seen = recent_changes((*profile.zones_seen, (at, rest)), ZONES_KEPT_MAX)
            return replace(profile, zones_seen=seen)
        case Setting.CLOCK:
            return replace(profile, skews_seen=(*profile.skews_seen, (at, rest))[-SKEWS_KEPT_MAX:])
        case Setting.PAUSE:
            first, last = map(date.fromisoformat, text.split("/"))
            return replace(
                profile, cover=replace(cover, pauses=tuple(sorted({*cover.pauses, (first, last)})))
            )
        case Setting.REST_DAYS:
            chosen = cover.rest.with_choice(*choice_of_text(text))
            return replace(profile, cover=replace(cover, rest=chosen))
        case Setting.SKIPPED:
            return with_skipped(profile, set(map(date.fromisoformat, text.split(" "))))
        case Setting.AMNESTIES:
            return with_amnesty_dates(profile, tuple(map(amnesty_of_text, filter(None, text.split(";")))))
        case Setting.OPENING:
            return replace(profile, cover=replace(cover, opening=Checkpoint.of(text)))
        case Setting.REVIEW:
            return put_under_review(profile, unstamp(at), rest)
        case Setting.RELEASE:
            # A review that a nightly comparison began is no entry, so its end says when it began.
            begun = replace(profile, tz_review=True, review_since=rest or profile.review_since)
            return end_review(begun, unstamp(at))
        case Setting.BOARDS:
            set_to = BoardSetting.of(text)
            at_once = EPOCH + timedelta(seconds=set_to.since)
            boards = with_settings(profile.board_settings, {set_to.name: set_to.value}, at_once)
            return replace(profile, board_settings=boards)
        case Setting.HOLD:
            return replace(profile, holds=(*profile.holds, Hold.of(text)))
        case Setting.HOLD_ENDED:
            return replace(profile, holds=holds_without(profile.holds, text))
        case _:
            return profile


def with_skipped(profile: Profile, dates: Collection[date]) -> Profile:
    """Return a profile for which these dates are no misses either: the user never had them.

    So they are no amnesty's, and stay neutral when one is revoked.
    """
    others = ((number, tuple(day for day in days if day not in dates)) for number, days in profile.amnesties)
    amnesties = tuple((number, days) for number, days in others if days)
    skipped = profile.cover.skipped.union(dates)
    if (skipped, amnesties) == (profile.cover.skipped, profile.amnesties):
        return profile
    return replace(profile, cover=replace(profile.cover, skipped=skipped), amnesties=amnesties)


def with_amnesty_dates(profile: Profile, amnesties: AmnestyDates) -> Profile:
    """Return a profile for which amnesties make these dates neutral, and no others."""
    skipped = otherwise_skipped(profile).union(*(dates for _, dates in amnesties))
    return replace(profile, cover=replace(profile.cover, skipped=skipped), amnesties=amnesties)


def amnesty_text(number: int, dates: Iterable[date]) -> str:
    """Return an amnesty's number, and the dates that it makes neutral for an account: `3 2026-06-02`."""
    return " ".join([str(number), *(day.isoformat() for day in dates)])


def amnesty_of_text(text: str) -> tuple[int, tuple[date, ...]]:
    """Read what amnesty_text wrote; raises ValueError for another text."""
    number, *dates = text.split(" ")
    return int(number), tuple(map(date.fromisoformat, dates))
