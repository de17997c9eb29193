"""A streak that is settled up to a date: what of a cover has made it, and whether another cover leaves it so.

A fold goes on from a state (rules/engagement/streaks.py, `advance`). That is right as long as the cover of
the dates before still is what it was, or differs in nothing that those dates have used.
"""

from collections import Counter
from datetime import date
from itertools import pairwise

from rules.engagement.streaks import Cover, Streak, net_freezes


def cover_until(cover: Cover, last: date) -> Cover:
    """Return the part of a cover that a fold of dates up to a date can use.

    Example: of a pause from 1 to 31 March, up to 10 March, it is 1 to 10 March.
    """
    return Cover(
        net_freezes(each for each in cover.freezes if each[0] <= last),
        tuple(sorted((first, min(end, last)) for first, end in cover.pauses if first <= last)),
        frozenset(each for each in cover.skipped if each <= last),
        opening=cover.opening,
    )


def is_still_settled(state: Streak | None, before: Cover, now: Cover) -> bool:
    """Whether a fold gives the same state with another cover. Both covers end at the same date.

    It may say no where the state would be the same; then all dates have to be folded anew. Freezes that are
    gone change nothing as long as each date that a freeze covered still has one: where a freeze was lacking
    before, it is lacking now.
    """
    if (before.pauses, before.skipped, before.opening) != (now.pauses, now.skipped, now.opening):
        return False
    changes = Counter(dict(net_freezes(now.freezes)))
    changes.subtract(dict(net_freezes(before.freezes)))
    if any(change > 0 for change in changes.values()):
        return False
    return all(now.granted(day) > place for place, day in enumerate(state.spent if state else ()))


def can_be(state: Streak) -> bool:
    """Whether a streak may have come to what it is by way of its checkpoints."""
    steps = [*state.checkpoints, state.checkpoint]
    return all(0 < each.length <= each.longest <= each.active_days for each in steps) and all(
        one.last < other.last
        and 0 < other.active_days - one.active_days <= (other.last - one.last).days
        and one.longest <= other.longest
        and one.spent == sum(day < one.last for day in state.spent)
        for one, other in pairwise(steps)
    )
