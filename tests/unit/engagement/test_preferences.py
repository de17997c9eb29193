"""Which pauses of a streak a user may ask for."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters.engagement.engagement_cache import EngagementCache
from ingest.engagement.preferences import Preferences, known_zone
from ingest.web.caller import ApiError
from rules.engagement.account_state import Account, Decision, Profile
from rules.engagement.board_settings import CHANGES_MAX, groups_of, is_hidden
from rules.engagement.streak import fold
from tests.support.books import KnownBooks

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Settled:
    """One account, on which nothing is pending."""

    def __init__(self) -> None:
        self.account = Account(Profile("u"), {})

    def finish_pending(self, user_id: str, now: datetime) -> Account:
        return self.account

    def decision_of(self, account: Account, rule: Callable[[Account], Decision]) -> Decision:
        return rule(account)

    def commit_at_once(self, decision: Decision, also: Any = ()) -> None:
        assert decision.profile.version == self.account.profile.version + 1
        self.account = Account(decision.profile, {})

    def reaching_back(self, profile: Profile, _: date) -> Profile:
        return profile


def test_nobody_pauses_more_dates_of_a_year_than_are_allowed_however_the_pauses_lie() -> None:
    store: Any = Settled()
    preferences = Preferences(store, EngagementCache(""), KnownBooks())
    for month in range(40):
        now = NOW + timedelta(days=15 * month)
        with suppress(ApiError):
            preferences.pause("u", now.date(), now.date() + timedelta(days=60), now)
    pauses = store.account.profile.cover.pauses
    assert len(pauses) > 3
    for first, _ in pauses:
        year = [first + timedelta(days=n) for n in range(365)]
        assert sum(any(since <= day <= until for since, until in pauses) for day in year) <= 92


def test_one_pause_too_many_says_so_and_changes_nothing() -> None:
    store: Any = Settled()
    preferences = Preferences(store, EngagementCache(""), KnownBooks())
    start = NOW.date()
    before, _ = preferences.pause("u", start, start + timedelta(days=89), NOW)
    with pytest.raises(ApiError) as refused:
        preferences.pause("u", start + timedelta(days=200), start + timedelta(days=202), NOW)
    assert (refused.value.status, refused.value.code) == (409, "pauses_max")
    assert store.account.profile == before
    with pytest.raises(ApiError) as refused:
        preferences.pause("u", start + timedelta(days=366), start + timedelta(days=366), NOW)
    assert (refused.value.status, refused.value.details) == (
        422,
        [{"field": "first", "reason": "is more than a year ahead"}],
    )


def test_a_pause_of_one_date_too_many_says_how_many_it_has() -> None:
    store: Any = Settled()
    preferences = Preferences(store, EngagementCache(""), KnownBooks())
    start = NOW.date()
    with pytest.raises(ApiError) as refused:
        preferences.pause("u", start, start + timedelta(days=91), NOW)
    reason = "gives the pause 92 dates; at most 91"
    assert (refused.value.status, refused.value.details) == (422, [{"field": "last", "reason": reason}])
    assert preferences.pause("u", start, start + timedelta(days=90), NOW)[1]


def test_the_same_pause_asked_for_again_is_the_one_that_is_there_however_late() -> None:
    store: Any = Settled()
    preferences = Preferences(store, EngagementCache(""), KnownBooks())
    first, last = NOW.date() + timedelta(days=1), NOW.date() + timedelta(days=3)
    before, is_new = preferences.pause("u", first, last, NOW)
    assert is_new
    for days in (
        0,
        0,
        1,
        3,
        4,
        400,
    ):  # by the clock of a machine that is ahead, or of a caller who lost the answer
        again = preferences.pause("u", first, last, NOW + timedelta(days=days))
        assert again == (before, False)
    with pytest.raises(ApiError) as refused:
        preferences.pause("u", first, first, NOW + timedelta(days=4))
    assert refused.value.details == [{"field": "first", "reason": "is before today"}]
    for near in ((first, last + timedelta(days=1)), (first + timedelta(days=1), last)):
        assert preferences.pause("u", *near, NOW)[1]
    assert len(store.account.profile.cover.pauses) == 3


def test_a_pause_before_an_active_date_that_a_zone_further_east_has_begun_is_refused() -> None:
    """The streak has walked over what lies before it: such a pause would change it without a trace."""
    store: Any = Settled()
    tomorrow = NOW.date() + timedelta(days=1)
    streak = fold([NOW.date() - timedelta(days=1), tomorrow], store.account.profile.cover)
    profile = replace(store.account.profile, streak=streak)
    store.account = replace(store.account, profile=profile)
    preferences = Preferences(store, EngagementCache(""), KnownBooks())
    with pytest.raises(ApiError) as refused:
        preferences.pause("u", NOW.date(), tomorrow, NOW)
    assert (refused.value.status, refused.value.details) == (
        422,
        [{"field": "first", "reason": "is before the newest active date, 2026-06-02"}],
    )
    assert preferences.pause("u", tomorrow, tomorrow, NOW)[0].cover.pauses == ((tomorrow, tomorrow),)


@pytest.mark.parametrize(
    ("said", "name"),
    [("GMT+3", "+03:00"), ("right/Europe/Berlin", "Europe/Berlin"), ("asia/tokyo", "Asia/Tokyo")],
)
def test_a_zone_is_set_under_the_name_that_is_meant(said: str, name: str) -> None:
    assert known_zone(said, "timezone") == name


@pytest.mark.parametrize("said", ["SystemV/AST4ADT", "W. Europe Standard Time", "GMT+15", "localtime"])
def test_a_zone_that_nobody_knows_is_not_set(said: str) -> None:
    with pytest.raises(ApiError) as refused:
        known_zone(said, "zones")
    assert refused.value.status == 422
    assert [f"{each['field']} {each['reason']}" for each in refused.value.details] == [str(refused.value)]
    assert refused.value.details[0]["field"] == "zones"


def test_whoever_changes_to_and_fro_may_always_leave_the_boards() -> None:
    store: Any = Settled()
    preferences = Preferences(store, EngagementCache(""), KnownBooks())
    preferences.set_hidden("u", False, NOW)
    for minute in range(CHANGES_MAX):
        preferences.set_groups("u", {"class": str(minute)}, NOW + timedelta(minutes=minute))
    at = NOW + timedelta(hours=1)
    with pytest.raises(ApiError) as refused:
        preferences.set_groups("u", {"class": "last"}, at)
    assert (refused.value.status, refused.value.code) == (409, "changes_max")
    assert is_hidden(preferences.set_hidden("u", True, at).board_settings)
    assert is_hidden(preferences.set_hidden("u", True, at).board_settings), "the same again is no change"
    with pytest.raises(ApiError, match="20 times"):
        preferences.set_hidden("u", False, at + timedelta(minutes=1))
    back = preferences.set_hidden("u", False, at + timedelta(days=31))
    assert (is_hidden(back.board_settings), groups_of(back.board_settings)) == (False, {"class": "19"})
