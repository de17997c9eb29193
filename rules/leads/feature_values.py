"""What a feature is worth, by the state of its input (rules/leads/series.py) or the lead's campaigns."""

from collections.abc import Iterable
from datetime import date, datetime
from operator import itemgetter

from rules.leads.features import (
    ACTIVE_DAYS_MAX,
    CAMPAIGN_DAYS_MAX,
    CAMPAIGN_GRACE_DAYS,
    Aggregate,
    Contact,
    Feature,
    Input,
    Value,
)
from rules.leads.series import KEPT_DAYS, Series, State

COUNT, AMOUNT = itemgetter(0), itemgetter(1)
AGES = frozenset({Aggregate.DAYS_SINCE_FIRST, Aggregate.DAYS_SINCE_LAST})
Sums = tuple[int, int]  # count, amount


def evaluate(
    feature: Feature,
    state: State,
    campaigns: Iterable[Contact],
    as_of: datetime,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> Value:
    """Return a feature's value at an instant (UTC) that no event of the state is later than.

    grace_days: a campaign that was sent so many dates ago, or before, and is unanswered, is ignored.
    """
    return evaluate_all((feature,), state, campaigns, as_of, grace_days)[feature.name]


def evaluate_all(
    features: Iterable[Feature],
    state: State,
    campaigns: Iterable[Contact],
    as_of: datetime,
    grace_days: int,
) -> dict[str, Value]:
    """Return the values of several features by name, each as `evaluate` gives it.

    Features of one input and one window share the sums of that window, because adding up dates is most of
    the work.
    """
    today, listed, windows = as_of.toordinal(), list(campaigns), dict[tuple[Input, int | None], Sums]()
    values: dict[str, Value] = {}
    for each in features:
        if each.input is Input.CAMPAIGNS:
            values[each.name] = _ignored(listed, today, grace_days)
        elif each.aggregate in AGES:
            values[each.name] = _age(each.aggregate, state[each.input], today)
        else:
            window = each.input, each.window_days
            if window not in windows:
                windows[window] = _window(state[each.input], each.window_days, today)
            count, amount = windows[window]
            if each.aggregate is Aggregate.AVERAGE and each.window_days is None:
                count = state[each.input].priced
            values[each.name] = _of_window(each.aggregate, count, amount)
    return values


def listed_on(state: State, campaigns: Iterable[Contact], as_of: datetime) -> str | None:
    """Return the date by which a lead is found by the schedule; None: time changes nothing that lists need.

    A lead is listed until all of its windows are empty, and for 90 dates after it last did anything. The date
    is the newest one that still counts in any of these. Example: an order keeps a lead listed for 365 dates.
    """
    today = as_of.toordinal()
    newest = [(state[Input.ACTIVITY].last, ACTIVE_DAYS_MAX)]
    newest += [(next(reversed(state[each].days), 0), days) for each, days in KEPT_DAYS.items()]
    newest += [(each.sent or 0, CAMPAIGN_DAYS_MAX) for each in campaigns if not each.reacted]
    day = max((day for day, days in newest if day > today - days), default=0)
    return date.fromordinal(day).isoformat() if day else None


def _age(aggregate: Aggregate, series: Series, today: int) -> int | None:
    day = series.first if aggregate is Aggregate.DAYS_SINCE_FIRST else series.last
    return today - day if day else None


def _of_window(aggregate: Aggregate, count: int, amount: int) -> Value:
    if aggregate is Aggregate.SUM:
        return amount
    if aggregate is Aggregate.COUNT:
        return count
    if aggregate is Aggregate.ANY:
        return count > 0
    return rounded(amount, count) if count > 0 else None


def _window(series: Series, window_days: int | None, today: int) -> Sums:
    if window_days is None:
        return series.count, series.amount
    floor, count, amount = today - window_days, 0, 0
    if series.days and next(iter(series.days)) > floor:  # all dates are in the window: this is faster
        sums = series.days.values()
        return sum(map(COUNT, sums)), sum(map(AMOUNT, sums))
    for day, (counted, sum_) in reversed(series.days.items()):
        if day <= floor:
            break
        count += counted
        amount += sum_
    return count, amount


def _ignored(campaigns: Iterable[Contact], today: int, grace_days: int) -> int:
    oldest, newest = today - CAMPAIGN_DAYS_MAX, today - grace_days
    return sum(
        not each.reacted and each.sent is not None and oldest < each.sent <= newest for each in campaigns
    )


def rounded(total: int, count: int) -> int:
    """Return total / count, rounded half up (towards plus infinity), in whole numbers."""
    return (2 * total + count) // (2 * count)
