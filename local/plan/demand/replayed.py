"""What replaying a file costs: its posts are sorted by what they do, and each kind is priced as measured.

Nothing is replayed for that. A file says how many events of a user a post has, on how many dates, which of
these are new, and which events are repeats; that is all the prediction is made of.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import ceil

from adapters import clock
from adapters.platform.batches import chunks
from local.plan.demand.file_rows import FileTexts, row_bytes
from local.plan.given.measured_units import Functions, MeasuredUnits, Spent, add, minus, tables_of, total
from local.replay.event_sources import Body
from local.replay.verify import local_date
from rules.days import parse_moment
from rules.engagement.events import RETENTION
from rules.engagement.placing import beside
from rules.lake.packed_records import FRAME_BYTES

READ_DAY = "read.DailyActivity"
BILLED_STEP_BYTES = 5 * 1024  # Firehose rounds each record up to this
# A look into the ledger, some moments old, for events whose keys may have expired: nothing is found.
LONG_AGO: Spent = {"EngagementFunction": {"read.RewardsLedger": 0.5}}
Group = tuple[str, str]


@dataclass
class _User:
    """A user as the file has shown them so far."""

    keys: set[str] = field(default_factory=set)
    dates: dict[date, datetime] = field(default_factory=dict)  # each with its earliest event


@dataclass(frozen=True)
class Prediction:
    """What a replay will cost.

    spent: by function. records: put to Firehose; the emulator leaves an object for each. firehose_bytes: as
    sent. billed_bytes: in Firehose's steps.
    """

    spent: Spent
    records: float
    firehose_bytes: float
    billed_bytes: float

    @property
    def write_units(self) -> float:
        """Write request units of all tables and indexes."""
        return sum(tables_of(self.spent, "write").values())

    @property
    def read_units(self) -> float:
        """Read request units."""
        return sum(tables_of(self.spent, "read").values())


def predicted(bodies: Iterable[Body], post_size: int, units: MeasuredUnits) -> Prediction:
    """Predict the posting of events, so many in a request, each applied and published before the next."""
    listed = list(bodies)
    texts = FileTexts.of(listed)
    users: dict[str, _User] = {}
    spent: Spent = {}
    put, old = [0.0, 0.0, 0.0], clock.now() - RETENTION
    for sent in chunks(listed, post_size):
        of_post: Spent = {}
        hours: Counter[Group] = Counter()
        for user, mine in _by_user(sent).items():
            add(of_post, _folded(users.setdefault(user, _User()), mine, units, hours, old))
        add(spent, of_post)
        for name, count in enumerate(_published(of_post, hours, texts, units)):
            put[name] += count
    return Prediction(spent, *put)


def _by_user(sent: Sequence[Body]) -> dict[str, list[Body]]:
    found: dict[str, list[Body]] = {}
    for body in sent:
        found.setdefault(body["user_id"], []).append(body)
    return found


def _folded(
    user: _User, sent: Sequence[Body], units: MeasuredUnits, hours: Counter[Group], old: datetime
) -> Spent:
    """Return what a user's events of one post cost, and note the hours that their rows are of.

    old: before it the keys of events may have expired.
    """
    distinct = {body["idempotency_key"]: body for body in sent}
    fresh = [body for key, body in distinct.items() if key not in user.keys]
    repeats = len(distinct) - len(fresh)
    spent = add({}, units.at("events.repeated", 5), repeats / 5)
    if not fresh:
        return spent
    known, is_new = set(user.dates), not user.keys
    looked_at = _looked_at(user, fresh)
    _take(user, fresh, hours)
    dates = {local_date(body) for body in fresh}
    add(spent, units.at("events.again", len(fresh)))
    add(spent, _a_date(units), len(dates) - 1)
    add(spent, {"EngagementFunction": {READ_DAY: looked_at * _look(units)}})
    if is_new:
        add(spent, _opening(units))
    elif any(parse_moment(body["occurred_at"]).utc < old for body in fresh):
        add(spent, LONG_AGO)
    if known and any(day < max(known) for day in dates - known):
        add(spent, {"EngagementFunction": {READ_DAY: _history(units, len(known))}})
    return spent


def _take(user: _User, fresh: Sequence[Body], hours: Counter[Group]) -> None:
    """Add events to a user."""
    for body in fresh:
        day = local_date(body)
        moment = parse_moment(body["occurred_at"])
        hour = moment.utc.strftime("%Y-%m-%dT%H")
        hours["BPEvents", hour] += 1
        user.keys.add(body["idempotency_key"])
        user.dates[day] = min(moment.utc, user.dates.get(day, moment.utc))
    for day in {local_date(body) for body in fresh}:
        hours["DailyActivity", datetime.combine(day, datetime.min.time()).isoformat()] += 1


def _looked_at(user: _User, fresh: Sequence[Body]) -> int:
    """Return how many days beside those of its events a post reads (rules.engagement.placing)."""
    if not user.dates:
        return 0
    last = max(user.dates)
    placed = [(local_date(body), parse_moment(body["occurred_at"]).utc) for body in fresh]
    asked = {day for day, at in placed if day not in user.dates or day < last or at < user.dates[day]}
    return sum(day <= last for day in beside(asked) - {day for day, _ in placed})


def _look(units: MeasuredUnits) -> float:
    """What reading one such day costs: an account's next date reads two."""
    next_, again = (total(units.paths[f"events.{kind}.1"], READ_DAY) for kind in ("next", "again"))
    return (next_ - again) / 2


def _a_date(units: MeasuredUnits) -> Functions:
    """What one more date of a post costs."""
    five = minus(units.paths["events.dates.5"], units.paths["events.next.5"])
    return add({}, five, 1 / 4)


def _opening(units: MeasuredUnits) -> Functions:
    """What a new account costs."""
    return minus(units.paths["events.first.1"], units.paths["events.again.1"])


def _history(units: MeasuredUnits, dates: int) -> float:
    """What reading all dates costs: the measured read was of a few dates, in whole units of 4 KB."""
    scan = units.paths["nightly.scan"]
    bytes_of_day = 2 * 4096 * total(scan, READ_DAY) / total(scan, "items.DailyActivity")
    return float(-(-dates * bytes_of_day // 4096))


def _published(
    of_post: Spent, hours: Counter[Group], texts: FileTexts, units: MeasuredUnits
) -> tuple[float, float, float]:
    """Return records, bytes and billed bytes of a post's rows: each table's by the hours that they are of."""
    groups = Counter(hours)
    for place, count in tables_of(of_post, "to").items():
        consumer, _, table = place.partition(".")
        if consumer == "PublisherFunction" and table not in ("BPEvents", "DailyActivity"):
            groups[table, "now"] += round(count)
    records = sent = billed = 0.0
    for (table, _), rows in (+groups).items():
        count = total(units.at(f"publish.{table}", rows), "firehose.records")
        size = rows * row_bytes(table, texts, units) / count + FRAME_BYTES
        records += count
        sent += count * size
        billed += count * ceil(size / BILLED_STEP_BYTES) * BILLED_STEP_BYTES
    return records, sent, billed
