"""What users_api.py and points_api.py share: their Api, its stores and services, and who may ask for what.

Each route begins with one of the `require_...` functions below, and is answered by a part of `services()`.
"""

from dataclasses import dataclass
from datetime import date

from adapters import clock
from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_store import AccountStore, ReviewIndex
from adapters.engagement.achievements import AchievementReader, AchievementStore, GoalStore, StreakReader
from adapters.engagement.active_dates import ActiveDatesReader
from adapters.engagement.amnesty_store import AmnestyApplier, AmnestyStore
from adapters.engagement.boards import BoardNames, BoardSnapshots, LeaderboardIndex
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore, PastEvents
from adapters.engagement.expiry import Settler
from adapters.engagement.friend_store import FriendStore
from adapters.engagement.leagues import Leagues, LeagueStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.period_boards import PeriodPages, StandingStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.limits import SharedCounters
from adapters.privacy.tombstones import tombstones_of
from ingest.engagement.friends import Friends
from ingest.engagement.goal_views import AchievementViews, GoalViews
from ingest.engagement.history import Histories
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.period_boards import PeriodBoards
from ingest.engagement.points.balance import HOLD_ID, Balances
from ingest.engagement.points.clawbacks import Clawbacks
from ingest.engagement.points.commands import Commands, SpendingCommands
from ingest.engagement.points.holds import Holds
from ingest.engagement.points.redemptions import Catalogue, Redemptions
from ingest.engagement.preferences import Preferences
from ingest.engagement.profiles import Profiles
from ingest.web.api import Allowance, Api, refuse_erased
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import text, user_id
from ingest.web.paging import day_of, last_date
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from rules.book.goal_rules import GOAL_NAME
from rules.privacy.tombstones import user_subject

SERVER_USERS = 100  # a server may send as many commands as so many users
HISTORIES_PER_MINUTE = 60  # each may read 10,000 entries, or the whole ledger for its freezes and pauses
# Each may read files of everybody for eight seconds, in a function of 3 GB. A limit of all callers together
# bounds how many of them run at once, in deployments that reserve no concurrency, too.
PAST_PER_MINUTE, ALL_PAST_PER_MINUTE = 10, 120
EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class UsersApiSettings(Allowance):
    """Settings of UsersApiFunction."""

    leaderboard_shards: int
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    bp_events_table: str
    idempotency_keys_table: str
    boards_table: str
    friends_table: str
    redis_url: str
    rule_books_table: str
    fingerprint_secret_arn: str
    commands_per_minute: int
    erasures_table: str
    erasure_secret_arn: str
    receipt_secret_arn: str
    event_hot_days: int  # after this many days events leave their table; 0: they expire
    past_function: str  # the function that reads past events from the lake


class CallLimits:
    """How often each caller may call, by what the calls cost."""

    def __init__(self, config: UsersApiSettings, client: ClientOf, redis: EngagementCache) -> None:
        counters = SharedCounters(lambda: client("dynamodb"), config.limits_table)
        most = config.commands_per_minute
        self.commands = RateLimit(counters, "commands", most, redis=redis)
        self.commands_for_one = RateLimit(counters, "commands for one user", most, redis=redis)
        self.commands_of_server = RateLimit(
            counters, "commands of one server", SERVER_USERS * most, step=CHEAP_STEP, redis=redis
        )
        self.histories = RateLimit(
            counters, "reads of whole histories", HISTORIES_PER_MINUTE, step=CHEAP_STEP, redis=redis
        )
        self.past = RateLimit(counters, "reads of past events", PAST_PER_MINUTE, redis=redis)
        self.all_past = RateLimit(counters, "reads of everybody's past", ALL_PAST_PER_MINUTE, redis=redis)


class UserServices:
    """What answers the requests, each under the name of what it knows."""

    def __init__(self, config: UsersApiSettings, client: ClientOf) -> None:
        dynamodb = client("dynamodb")
        redis, books = EngagementCache(config.redis_url), BookStore(dynamodb, config.rule_books_table)
        ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
        self.amnesties = AmnestyStore(dynamodb, config.rule_books_table)
        accounts = AccountStore(
            dynamodb,
            config.user_streaks_table,
            config.daily_activity_table,
            ledger,
            config.leaderboard_shards,
            self.amnesties.recent,
            books.daily_terms,
            books.pay_bonuses,
        )
        self.amnesty_applier = AmnestyApplier(accounts, redis)

        settler = Settler(accounts, books)
        events = EventStore(dynamodb, config.bp_events_table, expire=not config.event_hot_days)
        past = PastEvents(lambda: client("lambda"), config.past_function)
        self.profiles = Profiles(accounts, events, redis, settler)
        self.histories = Histories(accounts, events, past, config.event_hot_days)
        self.preferences = Preferences(accounts, redis, books)
        self.under_review = ReviewIndex(dynamodb, config.user_streaks_table)

        streaks = StreakReader(accounts, GoalStore(dynamodb, config.daily_activity_table), books)
        achieved = AchievementReader(streaks, AchievementStore(dynamodb, config.daily_activity_table), ledger)
        self.goals = GoalViews(self.profiles, streaks)
        self.achievements = AchievementViews(self.profiles, achieved)

        claims = ClaimStore(dynamodb, config.idempotency_keys_table)
        commands = Commands(accounts, claims, config.idempotency_keys_table, redis, settler)
        stock = RewardStock(dynamodb, config.rewards_table)
        store = RedemptionStore(dynamodb, config.rewards_table)
        self.spending, self.balances = SpendingCommands(commands, books), Balances(accounts, settler)
        self.redemptions = Redemptions(self.spending, stock, store)
        self.catalogue = Catalogue(books, stock, store, self.balances)
        self.holds, self.clawbacks = Holds(commands), Clawbacks(commands, books)

        index = LeaderboardIndex(dynamodb, config.user_streaks_table, config.leaderboard_shards)
        hashed = KeyedHash(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
        self.boards = Leaderboards(self.profiles, BoardSnapshots(dynamodb, config.boards_table), index, redis)
        self.friends = Friends(
            FriendStore(dynamodb, config.friends_table),
            accounts,
            ActiveDatesReader.of(accounts),
            books,
            self.is_erased,
        )
        self.names = BoardNames(dynamodb, config.user_streaks_table, hashed)
        league_store = LeagueStore(dynamodb, config.boards_table, config.daily_activity_table)
        self.leagues = Leagues(league_store, accounts)
        self.period_boards = PeriodBoards(
            self.profiles,
            self.boards.snapshots,
            StandingStore(dynamodb, config.boards_table),
            PeriodPages(dynamodb, config.boards_table),
            self.names,
            ledger,
            books.daily_terms,
            self.is_erased,
        )

        self.limits = CallLimits(config, client, redis)
        self.receipt_keys = KeyedHash(lambda: client("secretsmanager"), config.receipt_secret_arn)
        self.erased = tombstones_of(config, client)

    def is_erased(self, user_id: str) -> bool:
        """Whether a user was erased: no answer names them, although a list may still have them."""
        return self.erased.stands(user_subject(user_id))


@bootstrap(UsersApiSettings)
def services(config: UsersApiSettings, client: ClientOf) -> UserServices:
    """Return what answers requests."""
    return UserServices(config, client)


app = Api(
    "UsersApi",
    {
        "user_id": user_id(),
        "friend_id": user_id("of another user"),
        "entry_id": text(pattern="^[0-9]{8}T[0-9]{12}Z$"),
        "hold_id": text(pattern=HOLD_ID),
        "name": text(pattern=GOAL_NAME),
        "board": {"type": "string", "enum": ["streaks", "points"]},
        "board_name": text("a board of the book", pattern=GOAL_NAME),
        "number": text(pattern="^[0-9]{1,6}$"),
    },
)
refuse_erased(app, lambda user: services().is_erased(user))


def any_caller(user_id: str) -> Caller:
    """Return the caller, whoever it is. Raises 400 for a malformed user id."""
    app.check_path("user_id", user_id)
    return app.caller()


def require_reach(user_id: str) -> Caller:
    """Return the caller. Raises 400 for a malformed user id, 403 if the caller may not reach this user."""
    caller = any_caller(user_id)
    caller.check(user_id)
    return caller


def require_command(user_id: str) -> Caller:
    """Return the caller, who changes a user's account. Raises as require_reach and count_command."""
    return count_command(require_reach(user_id), user_id)


def count_command(caller: Caller, user_id: str) -> Caller:
    """Count a command of the caller for a user, and return the caller; raises 429 for too many a minute.

    A shop's server acts for all users. So its commands count for the user whom each is for, and may be
    SERVER_USERS times as many in all.
    """
    limits, now = services().limits, clock.now()
    if caller.is_admin:
        return caller
    if caller.user_id == user_id:
        limits.commands.check(user_id, 1, now)
    else:
        limits.commands_of_server.check(caller.user_id, 1, now)
        limits.commands_for_one.check(user_id, 1, now)
    return caller


def count_history(caller: Caller) -> None:
    """Count a read of a caller that may follow from thousands of entries; raises 429."""
    if not caller.is_admin:
        services().limits.histories.check(caller.user_id, 1, clock.now())


def count_past(caller: Caller) -> None:
    """Count a read of past events, of the caller and of everybody; raises 429."""
    if not caller.is_admin:
        services().limits.past.check(caller.user_id, 1, clock.now())
        services().limits.all_past.check(EVERYBODY, 1, clock.now())


def require_fulfilment(user_id: str) -> None:
    """Raise 403 unless the caller hands out rewards. Raises 400 and 429 as require_command."""
    caller = any_caller(user_id)
    caller.check_fulfilment()
    count_command(caller, user_id)


def require_shipper(user_id: str) -> Caller:
    """Return the caller, who says what became of rewards. Raises as require_fulfilment."""
    caller = any_caller(user_id)
    if not caller.brands:
        caller.check_fulfilment()
    return count_command(caller, user_id)


def date_of_query(name: str) -> date | None:
    """Return the date that a query asks about; raises 400, and 422 for one that is too far ahead."""
    return day_of(app.query, name, last_date(clock.now()))


def required_date() -> date:
    """Return the date that must be asked about; raises as date_of_query."""
    if (day := date_of_query("date")) is None:
        raise ApiError(400, "invalid_parameter", "date is missing")
    return day
