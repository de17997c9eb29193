"""Makes a snapshot of the boards every 5 minutes, and the results of periods and leagues that have ended.

Snapshot and final results are counted in one pass over the profiles. A final result follows from what the
profiles have of the period, which no longer changes. So it does not matter when it is made, within two weeks,
or by how many.

In a deployment with Redis, it also makes the lists of the longest streaks each minute, from the index
StreakLeaderboard.
"""

import heapq
import math
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_items import PARTITION
from adapters.engagement.account_store import AccountStore
from adapters.engagement.boards import BoardSnapshots, LeaderboardIndex, new_generation, write_snapshot
from adapters.engagement.daily_terms_store import DailyTermsStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.leagues import Leagues, LeagueStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.period_boards import StandingStore
from adapters.engagement.projections import LOWERED_MARKS, Projections
from adapters.logs import Logger
from adapters.platform.items import Item, decode_item
from adapters.platform.tables import scan_all
from rules.book.daily import DailyTerms
from rules.days import EPOCH, stamp
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import BoardSettings, board_settings_of, is_hidden
from rules.engagement.boards import Standings, is_due, with_ranks
from rules.engagement.period_points import unpack_period_points
from rules.engagement.period_standings import (
    PeriodStandings,
    missed_periods,
    periods_to_close,
    periods_waiting,
)
from rules.engagement.periods import Period, counted_until, final_at, unfinished_periods
from rules.engagement.reconciliation import has_lapsed
from rules.engagement.rest_days import NO_TERMS

# After so long the counting gives up. The function has 15 minutes, and must still write the snapshot.
SNAPSHOT_SECONDS = 600
# Cohorts are closed until shortly before the next run begins, which goes on: two at once would do much of the
# work twice. After a long count there is some time, too.
RUN_SECONDS, CLOSING_SECONDS = 290, 120
# So many segments of the table of profiles are read at the same time: one is decoded while others are on
# their way.
SEGMENTS = 4
# A run takes so many lapsed streaks out of the index StreakLeaderboard, the longest first.
LOWERED_MAX = 10_000
# The attributes that are read of a profile: of its scores, and those that lowering it needs. `timezone` is a
# reserved word of DynamoDB, so it has another name.
SCORE_ATTRIBUTES = (
    *("user_id", "#zone", "total_bestie_points", "bonus_points", "current_streak", "alias", PARTITION),
    *("period_points", "board_settings", "tz_review", "review_since", "reviewed_since", "released_at"),
)

logger = Logger(service="ranks")


@dataclass(frozen=True, slots=True)
class RanksSettings:
    """Settings of RanksFunction."""

    leaderboard_shards: int  # a region's parts in the index StreakLeaderboard
    user_streaks_table: str
    boards_table: str
    daily_activity_table: str
    rule_books_table: str
    redis_url: str


@dataclass(frozen=True, slots=True)
class RankBuilder:
    """Makes the snapshots and lists that the leaderboards are read from."""

    dynamodb: Any
    profiles_table: str
    boards_table: str
    index: LeaderboardIndex
    cache: EngagementCache
    leagues: Leagues | None = None
    daily_terms: Callable[[], DailyTerms] = lambda: NO_TERMS  # what the books say of boards

    def build(self, now: datetime) -> dict[str, Any]:
        """Make a snapshot if one is due, and final results.

        Returns {"counted"}: how many users; None: no new snapshot. If the book has boards, also {"closed"}:
        the names of periods whose final result was made; and {"missed"}: of those whose result can no longer
        be made, because no run has come within two weeks.
        """
        last = BoardSnapshots(self.dynamodb, self.boards_table).newest(now)
        if last and not is_due(last.as_of, last.users, now):
            return {"counted": None}
        until = time.monotonic() + SNAPSHOT_SECONDS
        terms = self.daily_terms()
        store = StandingStore(self.dynamodb, self.boards_table)
        has_boards = any(rules.boards for _, rules in terms)
        known = store.look() if has_boards else {}
        to_close = [period for period in periods_to_close(now, terms) if period not in known]
        instants = dict.fromkeys(unfinished_periods(now, terms), now)
        # Until the final result is there, the newest standing is shown.
        waiting = [period for period in periods_waiting(now, terms) if period not in known]
        instants |= {period: final_at(period, terms) for period in waiting}
        periods = PeriodStandings(instants, terms)
        counted = count_scores(self.dynamodb, self.profiles_table, now, until, periods)
        standings, generation = counted.standings, new_generation(now)
        store.write(periods, generation, now)
        is_newest = write_snapshot(self.dynamodb, self.boards_table, standings, generation)
        closed = [
            period.name for period in to_close if store.close(periods, period, final_at(period, terms), now)
        ]
        self._lower(counted.lapsed)
        result: dict[str, Any] = {"counted": standings.users if is_newest else None}
        missed = [period for period in missed_periods(now, terms) if period not in known]
        _log_missed(missed, terms, last.as_of if last else EPOCH)
        told = {"closed": closed, "missed": [period.name for period in missed]}
        return result | (told if has_boards else {})

    def _lower(self, lapsed: list[Item]) -> None:
        """Take lapsed streaks out of the index. What fails is left to the next run, or to the night."""
        # The days are not touched.
        results = Projections(self.dynamodb, self.profiles_table, days="").lower_all(lapsed)
        if errors := [each for each in results if isinstance(each, BaseException)]:
            logger.warning("not lowered", extra={"streaks": len(errors), "first": repr(errors[0])})

    def refresh(self, now: datetime) -> dict[str, Any]:
        """Store the lists of the longest streaks in Redis. Returns {"refreshed"}: how many lists."""
        lists = self.index.tops(now)
        for region, scores in lists.items():
            self.cache.keep_top_list(region, {"as_of": stamp(now), "entries": with_ranks(scores)})
        return {"refreshed": len(lists)}


def _log_missed(missed: Iterable[Period], terms: DailyTerms, since: datetime) -> None:
    """Log the periods whose final result has become impossible since an instant: nobody can do more later."""
    if new := [period.name for period in missed if counted_until(period, terms) > since]:
        logger.error("periods have no final result", extra={"periods": new})


@dataclass(slots=True)
class Count:
    """What a pass over the profiles found."""

    standings: Standings
    periods: PeriodStandings
    _longest: list[tuple[int, str, Item]] = field(default_factory=list)  # a heap

    @property
    def lapsed(self) -> list[Item]:
        """Profiles in the index with a lapsed streak, LOWERED_MAX at most: the longest ones."""
        return [item for _, _, item in self._longest]

    def add(self, scores: dict[str, Any], item: Item) -> None:
        """Count a user. item: the profile's attributes that were read."""
        self.standings.add(**scores)
        if self.periods.instants and "period_points" in item:
            with suppress(ValueError):  # a damaged profile is left out; the nightly run repairs it
                self.periods.add(_contestant(item))
        if PARTITION not in item or not has_lapsed(scores["lapses_at"], self.standings.as_of):
            return
        keep = heapq.heappush if len(self._longest) < LOWERED_MAX else heapq.heappushpop
        keep(self._longest, (scores["streak"], scores["user_id"], item))


def _contestant(item: Item) -> Profile:
    """Return what PeriodStandings.add takes of a profile. Raises ValueError for a damaged one."""
    no_text = {"S": ""}
    return Profile(
        item["user_id"]["S"],
        alias=item.get("alias", no_text).get("S"),
        period_points=unpack_period_points(item["period_points"].get("S", "damaged")),
        board_settings=_board_settings(item),
        tz_review=item.get("tz_review", {}).get("BOOL", False),
        review_since=item.get("review_since", no_text).get("S", ""),
        reviewed_since=item.get("reviewed_since", no_text).get("S", ""),
        released_at=item.get("released_at", no_text).get("S", ""),
    )


def _board_settings(item: Item) -> BoardSettings:
    """Return what a profile has of boards. Few have any, and decoding takes longer than all else."""
    if "board_settings" not in item:
        return ()
    return board_settings_of(decode_item({"texts": item["board_settings"]}).get("texts"))


def count_scores(
    dynamodb: Any,
    profiles: str,
    now: datetime,
    until: float = math.inf,
    periods: PeriodStandings | None = None,
) -> Count:
    """Count all users' scores, and find the streaks to take out of the index.

    The reads are eventually consistent, at half the price.

    A profile that somebody has damaged is left out; the nightly run repairs it. Raises TimeoutError at the
    monotonic second `until`.
    """
    found, lock = Count(Standings(now), periods or PeriodStandings({}, NO_TERMS)), threading.Lock()

    def count(segment: int) -> None:
        items = scan_all(
            dynamodb,
            TableName=profiles,
            ProjectionExpression=", ".join((*SCORE_ATTRIBUTES, *LOWERED_MARKS)),
            ExpressionAttributeNames={"#zone": "timezone"},
            Segment=segment,
            TotalSegments=SEGMENTS,
        )
        for item in items:
            if scores := _scores_of(item):
                with lock:
                    found.add(scores, item)
            if time.monotonic() >= until:
                raise TimeoutError(f"{found.standings.users} users were counted when the time was up")

    with ThreadPoolExecutor(SEGMENTS) as pool:
        list(pool.map(count, range(SEGMENTS)))
    return found


def _scores_of(profile: Item) -> dict[str, Any] | None:
    """Return what Standings.add takes of a profile; None for a damaged profile."""
    zero = {"N": "0"}
    try:
        return {
            "user_id": profile["user_id"]["S"],
            "zone": profile["timezone"]["S"],
            # Achievements are on no board: what they pay would rank those who have them twice.
            "points": int(profile["total_bestie_points"]["N"])
            - int(profile.get("bonus_points", {"N": "0"})["N"]),
            "streak": int(profile.get("current_streak", zero)["N"]),
            "lapses_at": int(profile.get("lapses_at", zero)["N"]),
            "alias": profile.get("alias", {"S": ""})["S"],
            "is_hidden": is_hidden(_board_settings(profile)),
        }
    except (KeyError, ValueError):
        return None


@bootstrap(RanksSettings)
def _parts(config: RanksSettings, client: ClientOf) -> RankBuilder:
    dynamodb = client("dynamodb")
    profiles = config.user_streaks_table
    index = LeaderboardIndex(dynamodb, profiles, config.leaderboard_shards)
    days, cache = config.daily_activity_table, EngagementCache(config.redis_url)
    terms = DailyTermsStore(dynamodb, config.rule_books_table)
    ledger = LedgerStore(dynamodb, "")  # profiles alone are read
    accounts = AccountStore(dynamodb, profiles, days, ledger, shards=0, daily_terms=terms.recent)
    leagues = Leagues(LeagueStore(dynamodb, config.boards_table, days), accounts)
    return RankBuilder(dynamodb, profiles, config.boards_table, index, cache, leagues, terms.recent)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a schedule. Two runs at the same time do no harm.

    The event {"streakline_refresh": "lists"}, each minute in a deployment with Redis, makes the lists
    instead.
    """
    builder, began = _parts(), time.monotonic()
    if "streakline_refresh" in event:
        return builder.refresh(clock.now())
    closed: dict[str, int] = {}
    try:
        built = builder.build(clock.now())
    finally:  # neither waits for the other's trouble to end
        if builder.leagues:
            until = max(began + RUN_SECONDS, time.monotonic() + CLOSING_SECONDS)
            closed = dict(builder.leagues.close_due(clock.now(), until))
    built |= closed
    logger.info("ranks", extra=built)
    return built
