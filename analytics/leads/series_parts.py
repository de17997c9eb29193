"""A series' features as SQL expressions, for the warehouse and for training sets (rules.leads.features).

Each input is a series of rows, and each row has a count and an amount. A feature is made of the series'
*parts*: sums of counts and amounts over a window, and the first and last date that counts. Example:
average_order_value is amount_all by count_all, rounded. Redshift and DuckDB read the same text, except for
the operator of whole division.
"""

from dataclasses import dataclass

from rules.leads.features import FEATURES, Aggregate, Feature, Input
from rules.leads.lead_events import ACTIVITY_TYPES, ORDER_SIGNS, PURCHASE_TYPES, SENTIMENT_TYPES

SERIES = tuple(name for name in Input if name is not Input.CAMPAIGNS)
DUCKDB_DIVISION, REDSHIFT_DIVISION = "//", "/"
# The part with how many rows of all time have an amount in the organization's own currency
PRICED = "priced"
_DAYS_SINCE = (Aggregate.DAYS_SINCE_FIRST, Aggregate.DAYS_SINCE_LAST)


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Which events are rows of a series, and the SQL for each row's count and amount."""

    where: str  # a condition of lake.lead_events
    count: str  # an expression
    amount: str  # an expression

    @property
    def priced(self) -> str:
        """The count of a row whose amount is in the organization's own currency."""
        return f"CASE WHEN foreign_minor IS NULL THEN {self.count} ELSE 0 END"


def sql_list(types: frozenset[str]) -> str:
    """Return event types as SQL lists them."""
    return ", ".join(f"'{event_type}'" for event_type in sorted(types))


def _signed_value(index: int, value: str) -> str:
    """Return what an event adds by its type's sign in ORDER_SIGNS: the value, its opposite, or 0.

    index: of the sign: 0 that of the count, 1 that of the amount.
    """
    cases = [
        f"WHEN event_type = '{name}' THEN {'-' * (signs[index] < 0)}{value}"
        for name, signs in sorted(ORDER_SIGNS.items())
        if signs[index]
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
    features = tuple(feature for feature in FEATURES if feature.input is input_)
    for feature in features:
        if feature.aggregate in _DAYS_SINCE and feature.window_days is not None:
            raise ValueError(f"{feature.name}: days since the first or last are not counted in a window")
        if (feature.aggregate is Aggregate.IGNORED) != (input_ is Input.CAMPAIGNS):
            raise ValueError(f"{feature.name}: {feature.aggregate} is not for {input_}")
    return features


def row_columns(input_: Input) -> tuple[str, ...]:
    """Return those of a row's `count`, `amount` and `priced` that an input's features are made of."""
    summed = [
        feature for feature in features_of(input_) if feature.aggregate in (Aggregate.SUM, Aggregate.AVERAGE)
    ]
    has_average = any(
        feature.aggregate is Aggregate.AVERAGE and feature.window_days is None for feature in summed
    )
    return ("count", *(["amount"] if summed else []), *([PRICED] if has_average else []))


def count_part(window_days: int | None) -> str:
    """Return the name of the count in a window."""
    return f"count_{window_days or 'all'}"


def amount_part(window_days: int | None) -> str:
    """Return the name of the sum of amounts in a window."""
    return f"amount_{window_days or 'all'}"


def value_sql(feature: Feature, day: str, division: str, table: str) -> str:
    """Return a feature of a series as an expression over its parts. A part is NULL where there are no rows.

    day: the expression for the date as of which it is computed, of the type of first_day and last_day.
    division: the operator of whole division. table: the prefix of the parts' names.
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
    dividend, divisor = f"(2 * {total} + {count})", f"(2 * {count})"
    remainder = f"MOD(MOD({dividend}, {divisor}) + {divisor}, {divisor})"
    return f"({dividend} - {remainder}) {division} {divisor}"
