"""Every 5 minutes: makes what the leaderboards are read from.

With Redis: its sorted sets, if they are not whole or will not count for much longer; several runs may be
needed. Without it, and before the sets are rebuilt: a snapshot of all boards; each minute while it is away.
Lists of streaks come from the index StreakLeaderboard; with Redis they are made each minute here, too.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters import clock, settings
from adapters.engagement.boards import BoardSnapshots, LeaderboardIndex, write_snapshot
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.profiles import all_profiles, count_scores
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from rules.days import stamp
from rules.engagement.boards import ALL_REGIONS, LISTED_MAX, is_due, with_ranks
from rules.smoke_names import is_smoke

# The sets are made anew before their marker expires, which is looked at every 5 minutes.
RENEW_SECONDS = 360
# Of one run, which has 15 minutes: then it leaves the sets to the next one, and gives up a snapshot.
REBUILD_SECONDS, SNAPSHOT_SECONDS = 240, 600
# It comes each minute.
REFRESH_SECONDS = 45

logger = Logger(service="ranks")


@dataclass(frozen=True, slots=True)
class RanksSettings:
    """Settings of the function that fills the sets of ranks."""

    leaderboard_shards: int  # a region's parts in the index StreakLeaderboard
    user_streaks_table: str
    boards_table: str
    redis_url: str


@dataclass(frozen=True, slots=True)
class RankBuilder:
    """Builds snapshots and sorted sets from the profiles in a table."""

    dynamodb: Any
    profiles_table: str
    boards_table: str
    index: LeaderboardIndex
    cache: EngagementCache

    def build(self, now: datetime) -> dict[str, Any]:
        """Build what is due; returns how many users the snapshot counted (None: no snapshot), and whether
        the sorted sets are whole and renewed. What is not finished in time, the next run goes on with.
        """
        ranks = self.cache.ranks
        is_under_way = ranks.is_under_way()
        if not is_under_way and ranks.ready(RENEW_SECONDS):
            return {"counted": None, "rebuilt": False}
        # Sets that are renewed answer meanwhile.
        counted = None if is_under_way and ranks.ready() else self._snapshot(now)
        pages = partial(all_profiles, self.dynamodb, self.profiles_table)
        rebuilt = self.cache.is_configured and ranks.rebuild(pages, now, time.monotonic() + REBUILD_SECONDS)
        return {"counted": counted, "rebuilt": rebuilt}

    def refresh(self, now: datetime) -> dict[str, Any]:
        """Make the lists of the first 100 anew, without streaks that show 0 by now; returns how many lists.

        Without whole sets there are none of points to make: readers make theirs from a snapshot. It is made
        here while Redis is away.
        """
        ranks = self.cache.ranks
        if not ranks.can_tell():
            self._snapshot(now)
            return {"refreshed": 0}
        lists = [("streaks", region, scores) for region, scores in self.index.tops(now).items()]
        if ranks.ready():
            ranks.lapse(now, time.monotonic() + REFRESH_SECONDS)
            points = ((region, ranks.top("points", region, LISTED_MAX, now)) for region in ALL_REGIONS)
            lists += [("points", region, scores) for region, scores in points if scores is not None]
        for board, region, scores in lists:
            self.cache.keep_top_list(region, board, {"as_of": stamp(now), "entries": with_ranks(scores)})
        return {"refreshed": len(lists)}

    def _snapshot(self, now: datetime) -> int | None:
        last = BoardSnapshots(self.dynamodb, self.boards_table).newest(now)
        if last and not is_due(last.as_of, last.users, now):
            return None
        until = time.monotonic() + SNAPSHOT_SECONDS
        try:
            counted = count_scores(self.dynamodb, self.profiles_table, now, until)
        except TimeoutError:
            logger.exception("no snapshot")  # the sorted sets need not be ready in one run
            return None
        is_newest = write_snapshot(self.dynamodb, self.boards_table, counted)
        return counted.users if is_newest else None


@settings.wiring(RanksSettings)
def _parts(config: RanksSettings) -> RankBuilder:
    dynamodb = fence_writer(client("dynamodb"))
    profiles = config.user_streaks_table
    index = LeaderboardIndex(dynamodb, profiles, config.leaderboard_shards)
    return RankBuilder(dynamodb, profiles, config.boards_table, index, EngagementCache(config.redis_url))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a schedule. Twice at once does no harm.

    {"streakline_refresh": "lists"}, each minute where there is Redis, makes the top lists anew instead.
    {"streakline_forget": [user_id, ...]} takes users of smoke tests out of the ranks instead.
    """
    builder = _parts()
    if "streakline_forget" in event:
        users = [each for each in event["streakline_forget"] if is_smoke(each)]
        return {"forgotten": not builder.cache.is_configured or builder.cache.forget(users, clock.now())}
    if "streakline_refresh" in event:
        return builder.refresh(clock.now())
    built = builder.build(clock.now())
    logger.info("ranks", extra=built)
    return built
