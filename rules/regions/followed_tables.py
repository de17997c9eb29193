"""How a table of a part is declared that another region follows (changes.py, standby.py)."""

from enum import StrEnum
from typing import NamedTuple


class UnseenPolicy(StrEnum):
    """What is done about items of a table that the old writer has and the new one has not."""

    CARRIED = "carried"  # put: they never change, and whoever reads them does what is to be done
    LISTED = "listed"  # named in the report: somebody must decide
    DERIVED = "derived"  # the new writer has made its own, or will


class FollowedTable(NamedTuple):
    """One table."""

    key: tuple[str, ...]  # the names of its key, the partition key first
    unseen: UnseenPolicy
