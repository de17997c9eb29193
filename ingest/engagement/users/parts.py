"""What the routes under /v1/users and /v1/leaderboards are made of."""

from dataclasses import dataclass
from functools import cache

from adapters import settings
from adapters.book.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.amnesty.amnesty_store import AmnestyStore
from adapters.engagement.amnesty.forgiving import Forgiver
from adapters.engagement.board_names import BoardNames
from adapters.engagement.board_snapshots import BoardSnapshots
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.goals.achievement_reader import AchievementReader
from adapters.engagement.goals.achievement_store import AchievementStore
from adapters.engagement.goals.goal_store import GoalStore
from adapters.engagement.goals.streak_reader import StreakReader
from adapters.engagement.leaderboard_index import LeaderboardIndex
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.past.past_events import PastEvents
from adapters.engagement.points.redemption_store import RedemptionStore
from adapters.engagement.points.reward_stock import RewardStock
from adapters.engagement.points.settling import Settler
from adapters.engagement.review_index import ReviewIndex
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.shared_counters import SharedCounters
from adapters.privacy.tombstones import Tombstones, tombstones_of
from adapters.settings.users_api import UsersApiSettings
from ingest.engagement.amnesty.acts import AmnestyActs
from ingest.engagement.goals.achievement_views import AchievementViews
from ingest.engagement.goals.goal_views import GoalViews
from ingest.engagement.history import Histories
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.points.balance import Balances
from ingest.engagement.points.catalogue import Catalogue
from ingest.engagement.points.clawbacks import Clawbacks
from ingest.engagement.points.commands import Commands
from ingest.engagement.points.holds import Holds
from ingest.engagement.points.redeeming import Redemptions
from ingest.engagement.points.rewards import Rewards
from ingest.engagement.preferences import Preferences, Reviews
from ingest.engagement.profiles import Profiles
from ingest.web.rate_limit import Limits, RateLimit
from rules.privacy.tombstones import user_subject


@dataclass(frozen=True, slots=True)
class UsersParts:
    """Each part under the name of what it knows."""

    profiles: Profiles
    goals: GoalViews
    achievements: AchievementViews
    histories: Histories
    rewards: Rewards
    redemptions: Redemptions
    catalogue: Catalogue
    holds: Holds
    clawbacks: Clawbacks
    balances: Balances
    preferences: Preferences
    boards: Leaderboards
    names: BoardNames
    reviews: Reviews
    amnesties: AmnestyActs
    commands: RateLimit
    erased: Tombstones

    def is_erased(self, user_id: str) -> bool:
        """Whether a user was erased: no answer names them, although a list may still have them."""
        return self.erased.stands(user_subject(user_id))


@cache
def parts() -> UsersParts:
    """Return the parts, made of this function's settings; once a process."""
    config, dynamodb = settings.read(UsersApiSettings), fenced(client("dynamodb"))
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    accounts = AccountStore(
        dynamodb, config.user_streaks_table, config.daily_activity_table, ledger, config.leaderboard_shards
    )
    events = EventStore(dynamodb, config.bp_events_table, expire=not config.event_hot_days)
    past = PastEvents(lambda: client("lambda"), config.past_function)
    redis = EngagementCache(config.redis_url)
    books = BookStore(dynamodb, config.rule_books_table)
    settler = Settler(accounts, books)
    profiles = Profiles(accounts, events, redis, settler)
    streaks = StreakReader(accounts, GoalStore(dynamodb, config.daily_activity_table), books)
    achieved = AchievementReader(streaks, AchievementStore(dynamodb, config.daily_activity_table), ledger)
    hashed = KeyedHash(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
    limits = Limits(redis, SharedCounters(dynamodb, config.limits_table))
    preferences = Preferences(accounts, redis, books)
    claims = ClaimStore(dynamodb, config.idempotency_keys_table)
    amnesties = AmnestyStore(dynamodb, config.rule_books_table)
    accounts.amnesties = amnesties.known
    commands = Commands(accounts, claims, config.idempotency_keys_table, redis, settler)
    rewards, balances = Rewards(commands, books), Balances(accounts, settler)
    stock = RewardStock(dynamodb, config.rewards_table)
    store = RedemptionStore(dynamodb, config.rewards_table)
    index = LeaderboardIndex(dynamodb, config.user_streaks_table, config.leaderboard_shards)
    return UsersParts(
        profiles,
        GoalViews(profiles, streaks),
        AchievementViews(profiles, achieved),
        Histories(accounts, events, past, config.event_hot_days),
        rewards,
        Redemptions(rewards, stock, store),
        Catalogue(books, stock, store, balances),
        Holds(commands),
        Clawbacks(commands, books),
        balances,
        preferences,
        Leaderboards(profiles, BoardSnapshots(dynamodb, config.boards_table), index, redis),
        BoardNames(dynamodb, config.user_streaks_table, hashed),
        Reviews(ReviewIndex(dynamodb, config.user_streaks_table), preferences),
        AmnestyActs(amnesties, Forgiver(accounts, redis)),
        limits.of("commands", config.commands_per_minute),
        tombstones_of(config),
    )
