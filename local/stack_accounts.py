"""A stack's accounts, for the commands that change them from outside."""

from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.settings.accounts import StreakIndex
from local.stack import Stack

# As infra/app/sizes.yaml has them: LeaderboardShards.
SHARDS, SHARDS_DEFAULT = {"large": 32}, 4


def accounts_of(stack: Stack) -> AccountStore:
    """Return a stack's accounts; they know no amnesties."""
    dynamodb = stack.client("dynamodb")
    ledger = LedgerStore(dynamodb, stack.tables["RewardsLedger"])
    profiles, days = stack.tables["UserStreaks"], stack.tables["DailyActivity"]
    return AccountStore(dynamodb, profiles, days, ledger, shards_of(stack))


def shards_of(stack: Stack) -> int:
    """Return how many shards the index of streaks has; 0: there is none."""
    is_indexed = stack.parameters.get("IndexStreaks") == "true"
    return StreakIndex(is_indexed, SHARDS.get(stack.parameters.get("Size", ""), SHARDS_DEFAULT)).index_shards


def cache_of(stack: Stack) -> EngagementCache:
    """Return a stack's cache; that of one on AWS is out of reach: a profile in it may be five minutes old."""
    return EngagementCache(stack.redis_url if stack.is_laptop else "")
