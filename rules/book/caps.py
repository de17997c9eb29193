"""What caps leave of points (docs/rules.md, rule 5): the same in any order of arrival.

Each event has the cap of the version that judges it, so events of one date may have several. For each of
these caps, all events that have it or a lower one earn no more than it allows. Example: 60 points under a cap
of 100, then, under a new version's cap of 50, two events of 30. The first of them gets 30; the second, which
would bring those under the cap of 50 to 60, gets 10: 100 of 100 in all.

An event gets as much as every cap allows at the time when it is applied. Because the sets that the caps
speak of lie one inside the other, the sum comes out the same in any order.
"""

from collections.abc import Mapping


def points_left(points: int, cap: int | None, earned: Mapping[int, int]) -> int:
    """Return the points that an event gets, from 0 to its own.

    cap: the event's, None for none. earned: what events of its type and period have earned so far, by cap.
    """
    if cap is None:
        return points
    left = points
    for limit in {cap, *(each for each in earned if each > cap)}:
        left = min(left, limit - sum(some for each, some in earned.items() if each <= limit))
    return max(0, left)


def total_points(points_by_cap: Mapping[int, int]) -> int:
    """Return what events of one type and period earn in all, by the caps that they have."""
    total = 0
    for cap in sorted(points_by_cap):
        total = min(cap, total + points_by_cap[cap])
    return total
