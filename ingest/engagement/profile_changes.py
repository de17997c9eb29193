"""Changes a profile without a ledger entry, whoever else writes to the account."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.aws import pauses
from rules.engagement.account import touch
from rules.engagement.account_state import Account, Profile

Change = Callable[[Account], tuple[Profile, Sequence[dict[str, Any]]]]


def change_profile(
    accounts: AccountStore,
    cache: EngagementCache,
    read: Callable[[], Account],
    now: datetime,
    change: Change,
) -> Profile:
    """Change a profile; returns it. Raises AccountContended.

    read: returns the account, with nothing pending. change: returns the profile with another content, or the
    same to change nothing; and further actions for the transaction.
    """
    user_id = ""
    for _ in pauses(ATTEMPTS_MAX):
        account = read()
        user_id = account.profile.user_id
        changed, also = change(account)
        profile = touch(account.profile, changed, now)
        if profile == account.profile:
            return profile
        try:
            accounts.put_profile(profile, also)
        except ProjectionMoved:
            continue
        cache.write_through([profile])
        return profile
    raise AccountContended(user_id)
