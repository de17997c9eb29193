"""Which achievements give notifications (docs/rules.md, rules 15 and 18).

From time to time a user's achievements are looked at. An achievement is news if the user did not have it at
the last look. If the book has got or changed the achievement since that look, the user must also have reached
it at or after the instant from which the present definition was in force (`since`). Every other change is
sent as `profile.changed`, with all achievements of the user: a new achievement that the user's history
fulfils, one that is withdrawn, or one that a late event dates earlier.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from rules.book.book import Books
from rules.days import stamp
from rules.engagement.achievements import DeclaredAchievement, definitions_digest
from rules.outgoing.derivation import UserNoticeState
from rules.outgoing.notices import Notice, NoticeType


@dataclass(frozen=True, slots=True)
class OfferedAchievement:
    """An achievement of the book in force."""

    title: str
    form: str  # a digest of its definition
    since: str  # a stamp: from then on, a version with this form was published and in force


def offered_achievements(
    declared: Mapping[str, DeclaredAchievement], books: Books, now: datetime
) -> dict[str, OfferedAchievement]:
    """Return the achievements of the book in force, by name."""
    newest_first = sorted(
        (version for version in books.versions if version.effective_at <= now),
        key=lambda version: (version.effective_at, version.number),
        reverse=True,
    )
    offered = {}
    for name, achievement in declared.items():
        since = now
        for version in newest_first:
            if version.book.achievements.get(name) != achievement.rule:
                break
            since = max(version.effective_at, version.published_at)
        form = definitions_digest(achievement)
        offered[name] = OfferedAchievement(achievement.rule.title, form, stamp(since))
    return offered


def notices_of_achievements(
    state: UserNoticeState, offered: Mapping[str, OfferedAchievement], achieved: Mapping[str, str]
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices of a user's achievements, and the state after them.

    achieved: the user's achievements, all of them offered ones; by name, the stamp at which the user reached
    the achievement. Nothing is news at the first look (state.seen_forms is None), because the user may have
    had the achievements for long.
    """
    achieved = dict(sorted(achieved.items()))
    news = [name for name in achieved if _is_news(name, state, offered, achieved)]
    fields = {"achievements": achieved, "profile": state.shown}
    notices = [
        Notice(
            NoticeType.ACHIEVEMENT_EARNED,
            {"achievement": name, "title": offered[name].title, "achieved_at": achieved[name], **fields},
        )
        for name in sorted(news, key=lambda name: (achieved[name], name))
    ]
    if not notices and achieved != state.achievements:
        notices = [Notice(NoticeType.PROFILE_CHANGED, fields)]
    seen_forms = {name: achievement.form for name, achievement in sorted(offered.items())}
    return notices, replace(
        state, number=state.number + len(notices), achievements=achieved, seen_forms=seen_forms
    )


def forget_achievements(state: UserNoticeState) -> tuple[list[Notice], UserNoticeState]:
    """Return no notices, and the state without what the last look has seen.

    It applies while no endpoint wants achievements. The next look is then like a first one: nothing is news.
    """
    return [], replace(state, achievements={}, seen_forms=None)


def _is_news(
    name: str, state: UserNoticeState, offered: Mapping[str, OfferedAchievement], achieved: Mapping[str, str]
) -> bool:
    if state.seen_forms is None or name in state.achievements:
        return False
    return state.seen_forms.get(name) == offered[name].form or achieved[name] >= offered[name].since
