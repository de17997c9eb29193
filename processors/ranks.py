"""Every 5 minutes: rebuilds the sorted sets in Redis that give exact ranks, if they are not whole."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from adapters import settings
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.leaderboard_index import LeaderboardIndex
from adapters.platform.aws import client
from adapters.settings.engagement import RanksSettings

logger = Logger(service="ranks")


@cache
def _parts() -> tuple[LeaderboardIndex, EngagementCache]:
    config = settings.read(RanksSettings)
    shards = config.leaderboard_shards
    return LeaderboardIndex(client("dynamodb"), config.user_streaks_table, shards), EngagementCache(
        config.redis_url, shards
    )


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a schedule. It does nothing without Redis, or while the sets are whole."""
    boards, redis = _parts()
    rebuilt = redis.is_configured and not redis.ranks_ready()
    if rebuilt:
        redis.rebuild_ranks(boards.everybody())
    logger.info("ranks", extra={"rebuilt": rebuilt})
    return {"rebuilt": rebuilt}
