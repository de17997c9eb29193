"""What caps leave of each entry's points, entry by entry in the order of the ledger, in columns.

Twin of rules.engagement.earnings.awards: the same points for each event, and not only the same sums, because
the balance at an instant, and what expires when, follow from the order.
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
UNLIMITED = 1 << 60


def earned(groups: Numbers, points: Numbers, limit: Numbers) -> Numbers:
    """Return each entry's points.

    groups: equal for the entries of one user, type and period of a cap. All arrays are in the order in which
    entries were written. limit: the entry's cap, UNLIMITED for none.
    """
    given = points.copy()
    capped = np.flatnonzero(limit < UNLIMITED)
    if not len(capped):
        return given
    order = capped[np.argsort(groups[capped], kind="stable")]
    keys, worth, most = groups[order], points[order], limit[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    sizes = np.diff(np.append(starts, len(keys)))
    mixed = np.minimum.reduceat(most, starts) != np.maximum.reduceat(most, starts)
    before = np.cumsum(worth) - worth
    before -= np.repeat(before[starts], sizes)
    result = np.minimum(before + worth, most) - np.minimum(before, most)
    if mixed.any():
        _mixed(result, worth, most, starts[mixed], sizes[mixed])
    given[order] = result
    return given


def _mixed(result: Numbers, worth: Numbers, most: Numbers, starts: Numbers, sizes: Numbers) -> None:
    """Work out the groups with several caps: the first entries of all of them, then the second ones ...

    had: by group and cap what entries with this cap or a lower one have earned. A cap that no entry has had
    yet binds no more than the next lower one does.
    """
    caps = [np.unique(most[start : start + size]) for start, size in zip(starts, sizes, strict=True)]
    limits = np.full((len(caps), max(map(len, caps))), UNLIMITED, np.int64)
    for row, some in enumerate(caps):
        limits[row, : len(some)] = some
    had = np.zeros_like(limits)
    for step in range(int(sizes.max())):
        rows = np.flatnonzero(sizes > step)
        at = starts[rows] + step
        binds = limits[rows] >= most[at, None]
        left = np.where(binds, limits[rows] - had[rows], UNLIMITED).min(axis=1)
        result[at] = np.clip(np.minimum(worth[at], left), 0, None)
        had[rows] += binds * result[at, None]
