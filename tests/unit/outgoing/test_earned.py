"""Which achievements are told of: what became true, once; the past and what is withdrawn are no news."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rules.book.book import Books, Version
from rules.book.goal_rules import AchievementRule, Condition, ConditionKind
from rules.days import EPOCH, stamp
from rules.engagement.account_state import Profile
from rules.engagement.goals import declared_achievements
from rules.outgoing.derivation import (
    OfferedAchievement,
    UserNoticeState,
    forget_achievements,
    notices_of_achievements,
    notices_of_profile,
    offered_achievements,
)
from rules.outgoing.notices import NoticeType
from tests.support.books import SHIPPED

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RICH = AchievementRule((Condition(ConditionKind.POINTS, 1_000),), title="Rich")
RICHER = AchievementRule((Condition(ConditionKind.POINTS, 500),), title="Rich")


def on(day: int) -> str:
    return stamp(START + day * DAY)


def stranger() -> UserNoticeState:
    """A user who has just begun."""
    return notices_of_profile(UserNoticeState(), Profile("ann", version=1), START)[1]


def somebody() -> UserNoticeState:
    """A user who was there before anybody was told."""
    return notices_of_profile(UserNoticeState(), Profile("ann", version=7), START)[1]


def known(since: int = -30, form: str = "a") -> dict[str, OfferedAchievement]:
    return {name: OfferedAchievement(name.title(), f"{form} {name}", on(since)) for name in ("bold", "rich")}


def told_of(
    told: UserNoticeState, found: Mapping[str, str], **more: Any
) -> tuple[list[str], UserNoticeState]:
    """What is told, in a word each; all of it must say what the user has."""
    notices, after = notices_of_achievements(told, known(**more), found)
    assert all(each.data["achievements"] == found for each in notices)
    assert all(each.data["profile"] == told.shown for each in notices)
    assert after.number == told.number + len(notices)
    return [str(each.data.get("achievement", each.type)) for each in notices], after


def test_what_a_late_event_makes_true_is_news_whatever_its_date() -> None:
    _, told = told_of(stranger(), {})
    assert told_of(told, {"rich": on(-400)})[0] == ["rich"]


def test_a_new_achievement_that_the_past_fulfils_is_no_news() -> None:
    notices, told = notices_of_achievements(stranger(), {}, {})
    assert notices == []
    heard, told = told_of(told, {"rich": on(1), "bold": on(6)}, since=5)
    assert heard == ["bold"], "it was reached when it was in the book; the other one goes along with it"
    assert told_of(told, {"rich": on(1), "bold": on(6)}, since=5)[0] == []
    _, told = notices_of_achievements(stranger(), {}, {})
    assert told_of(told, {"rich": on(1)}, since=5)[0] == ["profile.changed"]


def test_another_form_of_an_achievement_begins_anew() -> None:
    _, told = told_of(stranger(), {})
    assert told_of(told, {"rich": on(1)}, since=5, form="b")[0] == ["profile.changed"]
    assert told_of(told, {"rich": on(6)}, since=5, form="b")[0] == ["rich"]


def test_who_was_there_before_has_no_news_and_hears_what_there_is() -> None:
    heard, told = told_of(somebody(), {"rich": on(1)})
    assert heard == ["profile.changed"]
    assert told_of(told, {"rich": on(1), "bold": on(2)})[0] == ["bold"]


def test_after_a_time_in_which_nobody_asked_nothing_is_news() -> None:
    _, told = told_of(stranger(), {"rich": on(1)})
    found, told = forget_achievements(told)
    assert (found, told.achievements) == ([], {})
    assert forget_achievements(told)[1] == told, "so nothing is written"
    assert told_of(told, {"rich": on(1), "bold": on(2)})[0] == ["profile.changed"]


def test_what_is_withdrawn_is_told_and_may_be_earned_again() -> None:
    _, told = told_of(stranger(), {"rich": on(1)})
    heard, told = told_of(told, {})
    assert heard == ["profile.changed"]
    assert told_of(told, {"rich": on(4)})[0] == ["rich"]


@given(st.lists(st.dictionaries(st.sampled_from(["bold", "rich"]), st.integers(0, 9).map(on)), max_size=8))
def test_whatever_happens_the_newest_list_is_what_the_user_has(steps: list[dict[str, str]]) -> None:
    told, folded, heard = stranger(), dict[str, str](), list[str]()
    for found in steps:
        notices, told = notices_of_achievements(told, known(), found)
        for each in notices:
            folded = each.data["achievements"]
            heard += [each.data["achievement"]] if each.type == NoticeType.ACHIEVEMENT_EARNED else []
        assert folded == found
        assert set(found) <= set(heard), "each was told of once it was true"
        assert notices_of_achievements(told, known(), found) == ([], told)


def test_since_when_everybody_could_know_an_achievement_in_its_form() -> None:
    def version(number: int, day: int, published: int, **rules: AchievementRule) -> Version:
        book = replace(SHIPPED, achievements=rules)
        return Version(number, START + day * DAY, lambda: book, START + published * DAY)

    def since(*versions: Version) -> str:
        first = Version(1, EPOCH, lambda: replace(SHIPPED, achievements={}))
        books, now = Books([first, *versions]), START + 20 * DAY
        return offered_achievements(declared_achievements(books, now), books, now)["rich"].since

    assert since(version(2, 5, 3, rich=RICH)) == on(5)
    assert since(version(2, 5, 3, rich=RICH), version(3, 9, 8, rich=RICH)) == on(5), "it is the same"
    assert since(version(2, 5, 3, rich=RICHER), version(3, 9, 8, rich=RICH)) == on(9), "another form"
    assert since(version(2, 5, 3, rich=RICH), version(3, 6, 6), version(4, 9, 8, rich=RICH)) == on(9)
    assert since(version(2, 5, 11, rich=RICH)) == on(11), "in force in the past: nobody could know"
    assert since(version(2, 5, 3, rich=RICH), version(3, 30, 8)) == on(5), "the future does not count"
