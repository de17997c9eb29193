"""Shares of all users: where a night keeps what it knows of one, and how SQL tells who is in it."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from analytics.lake.curated_files import arrow_table, cursor, query
from analytics.lake.layout import run_key
from rules.turns import SHARE_DIGIT_VALUES, SHARE_DIGITS, share_of

# The same as rules.turns.share_of, in SQL. user: a column of ids; shares: how many there are.
SHARE = f"(('0x' || substr(md5({{user}}), 1, {SHARE_DIGITS}))::INT * {{shares}} // {SHARE_DIGIT_VALUES})"
FOLDER = "shares/"


@dataclass(frozen=True, slots=True)
class UserShare:
    """A share of all users (rules/turns.py). The only one of one is all users."""

    number: int = 0  # from 0
    of: int = 1  # how many shares there are

    def key(self, run_id: str, name: str = "") -> str:
        """Return the key of a file that a run keeps for this share."""
        return run_key(run_id, f"{FOLDER}{self.number:04}/{name}")

    @property
    def state_key(self) -> str:
        """Return the key of the file with what is settled of the share's users."""
        return f"state/users/{self.of}/{self.number:04}.parquet"

    def has(self, user_id: str) -> bool:
        """Whether a user is of this share."""
        return share_of(user_id, self.of) == self.number

    def rows_of(self, user: str) -> Callable[[pa.Table], pa.Table]:
        """Return a function that filters a table down to the rows of this share's users.

        user: the column with the user's id.
        """
        if self.of == 1:
            return lambda rows: rows
        db, share = cursor(), SHARE.format(user=user, shares=self.of)

        def rows_of_share(rows: pa.Table) -> pa.Table:
            with arrow_table(db, "rows", rows.select([user])):
                flags = query(db, f"SELECT {share} = {self.number} AS is_in_share FROM rows")  # noqa: S608 (our own)
            return rows.filter(flags["is_in_share"])

        return rows_of_share


ALL = UserShare()
