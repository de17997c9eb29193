"""A stack's accounts, for the commands that change them from outside."""

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from local.stack import Stack


def accounts_of(stack: Stack) -> AccountStore:
    """Return a stack's accounts; they know no amnesties."""
    dynamodb = stack.client("dynamodb")
    ledger = LedgerStore(dynamodb, stack.tables["RewardsLedger"])
    profiles, days = stack.tables["UserStreaks"], stack.tables["DailyActivity"]
    return AccountStore(dynamodb, profiles, days, ledger, int(stack.outputs["LeaderboardShards"]))


def cache_of(stack: Stack) -> EngagementCache:
    """Return a stack's cache; that of one on AWS is out of reach: a profile in it may be five minutes old."""
    return EngagementCache(stack.redis_url if stack.is_laptop else "")
