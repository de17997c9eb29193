"""Accounts as a test puts them into the tables, without entries."""

from adapters.engagement.account_store import AccountStore
from rules.engagement.account_state import Account, Decision, Profile


def put_profile(accounts: AccountStore, before: Profile, profile: Profile) -> None:
    """Put a profile in place of another one. Raises ProjectionMoved."""
    accounts.commit(Decision(Account(before, {}), before.head, (), {}, profile))
