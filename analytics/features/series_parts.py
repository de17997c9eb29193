"""A series' features as SQL expressions, for the warehouse and for training sets (rules.leads.features).

Each input is a series of rows, and each row has a count and an amount. A feature is made of the series'
*parts*: sums of counts and amounts over a window, and the first and last date that counts. Example:
average_order_value is amount_all by count_all, rounded. Redshift and DuckDB read the same text, except for
the operator of whole division.
"""

from dataclasses import dataclass

from rules.leads.features import FEATURES, Aggregate, Feature, Input
from rules.leads.lead_events import ACTIVITY_TYPES, ORDER_SIGNS, PURCHASE_TYPES, SENTIMENT_TYPES

SERIES = tuple(each for each in Input if each is not Input.CAMPAIGNS)
DUCKDB_DIVISION, REDSHIFT_DIVISION = "//", "/"
# Of all time, how many of those that count have an amount in the organization's own currency.
PRICED = "priced"
_DAYS_SINCE = (Aggregate.DAYS_SINCE_FIRST, Aggregate.DAYS_SINCE_LAST)


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Which events are rows of a series, and the SQL for each row's count and amount."""

    where: str
    count: str
    amount: str

    @property
    def priced(self) -> str:
        """The count of a row whose amount is in the organization's own currency."""
        return f"CASE WHEN foreign_minor IS NULL THEN {self.count} ELSE 0 END"


def sql_list(types: frozenset[str]) -> str:
    """Return event types as SQL lists them."""
    return ", ".join(f"'{each}'" for each in sorted(types))


def _signed_value(place: int, value: str) -> str:
    """Return what a type of ORDER_SIGNS adds: a value, its opposite, or 0. place: 0 of count, 1 of amount."""
    cases = [
        f"WHEN event_type = '{name}' THEN {'-' * (signs[place] < 0)}{value}"
        for name, signs in sorted(ORDER_SIGNS.items())
        if signs[place]
    ]
    return f"CASE {' '.join(cases)} ELSE 0 END"


ROWS = {
    Input.PURCHASES: SeriesRows(
        f"event_type IN ({sql_list(PURCHASE_TYPES)})"
        " AND (amount_minor IS NOT NULL OR foreign_minor IS NOT NULL)",
        _signed_value(0, "1"),
        _signed_value(1, "COALESCE(amount_minor, 0)"),
    ),
    Input.SENTIMENT: SeriesRows(
        f"event_type IN ({sql_list(SENTIMENT_TYPES)}) AND sentiment_milli IS NOT NULL", "1", "sentiment_milli"
    ),
    Input.ACTIVITY: SeriesRows(
        f"event_type IN ({sql_list(ACTIVITY_TYPES)}) AND unreadable IS NULL", "1", "0"
    ),
}


def windows_of(input_: Input) -> tuple[int, ...]:
    """Return the lengths, in dates, of the windows that an input's features use; ascending."""
    return tuple(
        sorted({feature.window_days for feature in features_of(input_) if feature.window_days is not None})
    )


def features_of(input_: Input) -> tuple[Feature, ...]:
    """Return an input's features. Raises ValueError for a feature that this module has no SQL for."""
    found = tuple(feature for feature in FEATURES if feature.input is input_)
    for each in found:
        if each.aggregate in _DAYS_SINCE and each.window_days is not None:
            raise ValueError(f"{each.name}: days since the first or last are not counted in a window")
        if (each.aggregate is Aggregate.IGNORED) != (input_ is Input.CAMPAIGNS):
            raise ValueError(f"{each.name}: {each.aggregate} is not for {input_}")
    return found


def row_columns(input_: Input) -> tuple[str, ...]:
    """Return which of a row's `count`, `amount` and `priced` an input's features are made of."""
    summed = [
        feature for feature in features_of(input_) if feature.aggregate in (Aggregate.SUM, Aggregate.AVERAGE)
    ]
    averages = [each for each in summed if each.aggregate is Aggregate.AVERAGE and each.window_days is None]
    return ("count", *(["amount"] if summed else []), *([PRICED] if averages else []))


def count_part(window_days: int | None) -> str:
    """Return the name of the count in a window."""
    return f"count_{window_days or 'all'}"


def amount_part(window_days: int | None) -> str:
    """Return the name of the sum of amounts in a window."""
    return f"amount_{window_days or 'all'}"


def value_sql(feature: Feature, day: str, division: str, table: str) -> str:
    """Return a feature of a series as an expression over its parts. A part is NULL where there are no rows.

    day: the expression for the date asked about, of the type that first_day and last_day have.
    table: what stands before the parts' names.
    """
    count, amount = table + count_part(feature.window_days), table + amount_part(feature.window_days)
    match feature.aggregate:
        case Aggregate.SUM:
            return f"COALESCE({amount}, 0)"
        case Aggregate.COUNT:
            return f"COALESCE({count}, 0)"
        case Aggregate.ANY:
            return f"COALESCE({count}, 0) > 0"
        case Aggregate.AVERAGE:
            count = f"{table}{PRICED}" if feature.window_days is None else count
            return f"CASE WHEN {count} > 0 THEN {_rounded_quotient(amount, count, division)} END"
        case Aggregate.DAYS_SINCE_FIRST:
            return f"{day} - {table}first_day"
        case Aggregate.DAYS_SINCE_LAST:
            return f"{day} - {table}last_day"
    raise ValueError(f"{feature.name}: no expression for {feature.aggregate}")


def _rounded_quotient(total: str, count: str, division: str) -> str:
    """Divide as rules.leads.feature_items.rounded_mean does.

    SQL's division cuts off towards 0, so the remainder is subtracted before it.
    """
    over, by = f"(2 * {total} + {count})", f"(2 * {count})"
    return f"({over} - MOD(MOD({over}, {by}) + {by}, {by})) {division} {by}"
