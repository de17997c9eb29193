"""Ways to corrupt the lake's curated files by hand, by name: what they hold of one user."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from tests.support.town import Town

Row = dict[str, Any]
Change = Callable[[list[Row]], Iterable[Row]]
OWNER = {"ledger": "account_id", "daily_activity": "user_id"}


def rewritten(entity: str, change: Change) -> Callable[[Town, str], None]:
    """Change what one curated file holds of a user, the oldest with an entry that is not the opening one."""

    def apply(town: Town, user: str) -> None:
        for stored in town.objects.list(f"curated/{entity}/"):
            table = pq.read_table(BytesIO(town.objects.get(stored.key)))
            rows = table.to_pylist()
            own = [row for row in rows if row[OWNER[entity]] == user and row.get("seq") != 0]
            if own:
                changed = list(change([dict(row) for row in own]))
                assert changed != own
                rest = [row for row in rows if row not in own]
                data = BytesIO()
                pq.write_table(pa.Table.from_pylist(rest + changed, table.schema), data)
                town.objects.put(stored.key, data.getvalue())
                return
        raise AssertionError(f"the lake has nothing of {user}")

    return apply


def spoil(
    objects: Objects, entity: str, column: str, whose: Callable[[Row], bool], *, is_emptied: bool = False
) -> Row:
    """Change or empty one column of the first row that is meant, in its curated file; returns what it was."""
    for stored in objects.list(f"curated/{entity}/"):
        table = pq.read_table(BytesIO(objects.get(stored.key)))
        rows = table.to_pylist()
        found = next((row for row in rows if whose(row)), None)
        if found is not None:
            before = dict(found)
            found[column] = None if is_emptied else another(before[column], table.schema.field(column).type)
            data = BytesIO()
            pq.write_table(pa.Table.from_pylist(rows, table.schema), data)
            objects.put(stored.key, data.getvalue())
            return before
    raise AssertionError(f"no row of {entity} is meant")


def another(value: Any, kind: pa.DataType) -> Any:
    """Return another value of a column: near the one that is there."""
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_integer(kind):
        return (value or 0) + 1
    if pa.types.is_date(kind):
        return value + timedelta(days=1) if value else date(2026, 1, 1)
    if pa.types.is_timestamp(kind):
        return value + timedelta(microseconds=1) if value else datetime(2026, 1, 1, tzinfo=UTC)
    return f"{value or ''}x"


def first(**changes: Any) -> Change:
    """Change the first row. A change is a value, or a function of the value that was there."""

    def change(rows: list[Row]) -> list[Row]:
        rows[0] |= {name: each(rows[0][name]) if callable(each) else each for name, each in changes.items()}
        return rows

    return change


def later(moment: Any) -> Any:
    return moment + timedelta(microseconds=1)


DAY_GONE = rewritten("daily_activity", lambda rows: rows[1:])  # no journal: the warehouse reads it
LAKE = {
    "entry gone": rewritten("ledger", lambda rows: rows[1:]),
    "all entries of a date gone": rewritten("ledger", lambda _: []),
    "entry with more points": rewritten("ledger", first(points=lambda points: points + 1000)),
    "entry with another balance": rewritten("ledger", first(balance=lambda balance: balance + 1000)),
    "entry with another event": rewritten("ledger", first(event_id="another")),
    "entry with another reward": rewritten("ledger", first(reward_id="car")),
    "entry with another brand": rewritten("ledger", first(brand="other")),
    "entry of another place": rewritten("ledger", first(created_at=later)),
    "entry twice": rewritten("ledger", lambda rows: [*rows, rows[0]]),
    "entry made up": rewritten("ledger", lambda rows: [*rows, rows[-1] | {"seq": 99, "points": 1000}]),
}
