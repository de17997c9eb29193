"""What has expired of all users' points, in columns (docs/rules.md, rule 11).

expired(lot) = max(0, earned with an expiry up to this lot's - spent until then - expired before). Added up,
that is the greatest of `earned up to a lot - spent until then` of the lots up to one, and at least 0.
"""

from dataclasses import dataclass

import numpy as np

from analytics.what_if.capped import Numbers
from rules.book.point_rules import EXPIRES_AT

DAY_BITS, DAY_ZERO = 24, 1 << 23
MS_BITS = 43
MS_A_DAY = 86_400_000
NOON_MS = EXPIRES_AT.hour * 3_600_000
NEVER = np.iinfo(np.int32).max  # as a day: the points last


def running(values: Numbers, users: Numbers) -> Numbers:
    """Return running sums that begin anew with each user. users: ascending."""
    sums = np.cumsum(values)
    starts = np.flatnonzero(np.append(True, users[1:] != users[:-1])) if len(users) else users
    base = (sums - values)[starts]
    return sums - np.repeat(base, np.diff(np.append(starts, len(users))))


@dataclass(frozen=True, slots=True)
class Expired:
    """By user and date of expiry, ascending: what has expired up to it in all. keys: user << 24 | day."""

    keys: Numbers
    gone: Numbers

    @classmethod
    def of(cls, lots: tuple[Numbers, Numbers, Numbers], moves: tuple[Numbers, Numbers, Numbers]) -> "Expired":
        """Work out all lots. lots: users, days on which they expire, points.

        moves: users, when points were spent (microseconds since 1970), how many; below 0: given back.
        """
        keys, place = np.unique((lots[0] << DAY_BITS) + lots[1] + DAY_ZERO, return_inverse=True)
        if not len(keys):
            return cls(keys, keys)
        points = np.zeros(len(keys), np.int64)
        np.add.at(points, place, lots[2])
        users = keys >> DAY_BITS
        noon = ((keys & (1 << DAY_BITS) - 1) - DAY_ZERO) * MS_A_DAY + NOON_MS
        over = running(points, users) - _spent(users, noon, moves)
        # The users' running maxima, in one pass: each user's values lie above those of the user before.
        step = int(np.abs(over).max()) + 1
        shift = (users - users[0]) * 2 * step
        return cls(keys, np.maximum.accumulate(np.maximum(over, 0) + shift) - shift)

    def by(self, users: Numbers, days: Numbers) -> Numbers:
        """Return what had expired of users' points in all, up to dates."""
        if not len(self.keys):
            return np.zeros(len(users), np.int64)
        place = np.searchsorted(self.keys, (users << DAY_BITS) + days + DAY_ZERO, side="right") - 1
        known = (place >= 0) & (self.keys[place] >> DAY_BITS == users)
        return np.where(known, self.gone[place], 0)


def _spent(users: Numbers, until_ms: Numbers, moves: tuple[Numbers, Numbers, Numbers]) -> Numbers:
    """Return what each user has spent until an instant, which is a whole millisecond."""
    who, when, points = moves
    keys = (who << MS_BITS) + -(-when // 1000)
    order = np.argsort(keys, kind="stable")
    sums = np.append(0, running(points[order], who[order]))
    asked = (users << MS_BITS) + until_ms
    place = np.searchsorted(keys[order], asked, side="right")
    is_same = np.append(-1, who[order])[place] == users
    return np.where(is_same, sums[place], 0)


def last_expired(at: Numbers) -> Numbers:
    """Return the newest days on which points have expired by instants, in microseconds since 1970."""
    return (at // 1000 - NOON_MS) // MS_A_DAY
