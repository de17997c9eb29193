"""What a leaderboard costs without Redis: items and read units per top list and per rank."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from adapters.book import BookStore
from adapters.engagement.account_items import profile_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.boards import BoardSnapshots, LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.points import Settler
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from bench.engagement.reads import ReadCount, mean_bytes
from bench.engagement.units import WriteUnits
from bench.figure import Figure
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.profiles import Profiles
from processors.ranks import RankBuilder
from rules.engagement.account_state import Profile
from rules.engagement.boards import BOARDS, GLOBAL
from rules.engagement.ledger import Head
from rules.engagement.streak import Streak
from tests.support.dynamodb_engine import running, table_definition

SIZES = (1_000, 10_000, 100_000)
TOP, SHARDS = 10, 4
ITEMS_MAX = 50
ROWS_MAX = 3 * SHARDS * 120  # of three regions in which somebody is: the first 100 of a shard, and ties
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/Lima", "Asia/Tokyo", "+02:00")


def run() -> Iterator[Figure]:
    """Yield the counts of each size."""
    with running() as engine:
        for size in SIZES:
            yield from BoardsTown(engine.client("dynamodb"), size).figures()


def crowd(size: int) -> Iterator[Profile]:
    """Yield so many users; few have many points, or a long streak."""
    chance = random.Random(size)
    for number in range(size):
        length = min(1 + int(chance.expovariate(0.05)), 700)
        yield Profile(
            user_id=str(UUID(int=chance.getrandbits(128))),
            version=3,
            head=Head("2026-03-01T00:00:00.000000Z", number, 5),
            total_points=5 * (1 + int(chance.expovariate(0.002))),
            streak=Streak(NOW.date() - timedelta(days=chance.randrange(2)), length, length, length),
            timezone=chance.choice(ZONES),
            updated_at="2026-03-10T11:00:00.000000Z",
        )


@dataclass
class BoardsTown:
    """So many users, in tables of their own."""

    dynamodb: Any
    size: int

    def __post_init__(self) -> None:
        self.users_table, self.boards_table = f"UserStreaks{self.size}", f"Boards{self.size}"
        for name, table in (("UserStreaks", self.users_table), ("Boards", self.boards_table)):
            self.dynamodb.create_table(**table_definition(name, table))
        users = list(crowd(self.size))
        items = [encode_item(profile_attributes(each, SHARDS)) for each in users]
        put_all(self.dynamodb, self.users_table, items)
        self.asked = sorted(users, key=lambda each: each.total_points)[self.size // 2]
        self.reads, self.writes = ReadCount(mean_bytes(items)), WriteUnits()
        self.reads.watch(self.dynamodb)
        self.writes.watch(self.dynamodb)

    def build(self) -> None:
        """Make the snapshot that is due."""
        index, none = LeaderboardIndex(self.dynamodb, self.users_table, SHARDS), EngagementCache("")
        built = RankBuilder(self.dynamodb, self.users_table, self.boards_table, index, none).build(NOW)
        assert built["counted"] == self.size, built

    def boards(self) -> Leaderboards:
        """Return the boards as a process sees them that has just started."""
        ledger = LedgerStore(self.dynamodb, "RewardsLedger")
        accounts = AccountStore(self.dynamodb, self.users_table, "DailyActivity", ledger, SHARDS)
        profiles = Profiles(
            accounts,
            EventStore(self.dynamodb, "BPEvents"),
            EngagementCache(""),
            Settler(accounts, BookStore(self.dynamodb, "RuleBooks")),
        )
        index = LeaderboardIndex(self.dynamodb, self.users_table, SHARDS)
        snapshots = BoardSnapshots(self.dynamodb, self.boards_table)
        return Leaderboards(profiles, snapshots, index, EngagementCache(""))

    def figures(self) -> Iterator[Figure]:
        """Yield the counts of the snapshot, then of each request."""
        self.build()
        items, units = self.reads.take()
        detail = f"{units:.1f} read units, {self.writes.take():.0f} write units"
        yield Figure(f"{self.size:,} users: a snapshot, items", items, detail=detail)
        user = self.asked.user_id
        for board in BOARDS:
            top = self.reading(lambda board=board: self.boards().top(board, GLOBAL, TOP, NOW))  # type: ignore[misc]
            most = ROWS_MAX if board == "streaks" else ITEMS_MAX
            yield self._figure(f"top {TOP} of {board}", top, most)
            rank = self.reading(lambda board=board: self.boards().rank(board, GLOBAL, user, NOW))  # type: ignore[misc]
            yield self._figure(f"rank in {board}", rank, ITEMS_MAX)

    def _figure(self, claim: str, read: tuple[int, float], most: int) -> Figure:
        return Figure(f"  {claim}, items", read[0], "<=", most, f"{read[1]:.1f} read units")

    def reading(self, work: Callable[[], object]) -> tuple[int, float]:
        """Return the items and units that a piece of work reads."""
        self.reads.take()
        work()
        return self.reads.take()
