"""Which achievements give notifications (docs/rules.md, rules 15 and 18).

News is what became true since somebody looked. Of an achievement that is in the book in this form only
since then, it is what was reached after that. Everything else (a new achievement that history fulfils,
one that is withdrawn, one that a late event dates earlier) is sent as `profile.changed`: its
`achievements` are all of the user's.
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
    form: str
    since: str  # a stamp, when everybody could know it in this form


def offered_achievements(
    declared: Mapping[str, DeclaredAchievement], books: Books, now: datetime
) -> dict[str, OfferedAchievement]:
    """Return the achievements of the book in force, by name."""
    until_now = sorted(
        (each for each in books.versions if each.effective_at <= now),
        key=lambda each: (each.effective_at, each.number),
        reverse=True,
    )
    found = {}
    for name, each in declared.items():
        since = now
        for version in until_now:
            if version.book.achievements.get(name) != each.rule:
                break
            since = max(version.effective_at, version.published_at)
        found[name] = OfferedAchievement(each.rule.title, definitions_digest(each), stamp(since))
    return found


def notices_of_achievements(
    state: UserNoticeState, offered: Mapping[str, OfferedAchievement], achieved: Mapping[str, str]
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices of a user's achievements, and the state after them.

    achieved: by name, instants of those that the user has. state.asked is None for somebody who was there
    before anybody looked: then nothing is news.
    """
    has = dict(sorted(achieved.items()))
    news = [name for name in has if _is_news(name, state, offered, has)]
    about = {"achievements": has, "profile": state.shown}
    notices = [
        Notice(
            NoticeType.ACHIEVEMENT_EARNED,
            {"achievement": name, "title": offered[name].title, "achieved_at": has[name], **about},
        )
        for name in sorted(news, key=lambda each: (has[each], each))
    ]
    if not notices and has != state.achievements:
        notices = [Notice(NoticeType.PROFILE_CHANGED, about)]
    asked = {name: each.form for name, each in sorted(offered.items())}
    return notices, replace(state, number=state.number + len(notices), achievements=has, asked=asked)


def notices_unasked(state: UserNoticeState) -> tuple[list[Notice], UserNoticeState]:
    """Return the state of somebody at whose achievements nobody looks: whoever looks next has no news."""
    return [], replace(state, achievements={}, asked=None)


def _is_news(
    name: str, state: UserNoticeState, offered: Mapping[str, OfferedAchievement], has: Mapping[str, str]
) -> bool:
    if state.asked is None or name in state.achievements:
        return False
    return state.asked.get(name) == offered[name].form or has[name] >= offered[name].since
