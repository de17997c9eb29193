"""A share of all users: where a night keeps what it knows of it, and how SQL tells who is in it."""

from dataclasses import dataclass

from analytics.lake.layout import run_key
from rules.engagement.reconciliation import HASH_DIGITS, HASHES

# Twin of rules.engagement.reconciliation.share_of. user: a column of ids; shares: how many there are.
SHARE = f"(('0x' || substr(md5({{user}}), 1, {HASH_DIGITS}))::INT * {{shares}} // {HASHES})"
FOLDER = "shares/"


@dataclass(frozen=True, slots=True)
class UserShare:
    """One of so many shares of all users (rules/engagement/reconciliation.py). Alone it is all users."""

    number: int = 0
    of: int = 1

    def key(self, run_id: str, name: str = "") -> str:
        """Return the key of a file that a run keeps for this share."""
        return run_key(run_id, f"{FOLDER}{self.number:04}/{name}")

    @property
    def settled_key(self) -> str:
        """Return where the share's users are, as older partitions make them."""
        return "state/users.parquet" if self.of == 1 else f"state/users/{self.of}/{self.number:04}.parquet"
