"""The values of features, computed from a lead's state and its campaigns at an instant."""

from collections.abc import Collection, Iterable
from datetime import date, datetime

from rules.leads.features import (
    ACTIVE_DAYS_MAX,
    CAMPAIGN_DAYS_MAX,
    CAMPAIGN_GRACE_DAYS,
    FEATURES,
    Aggregate,
    Contact,
    Feature,
    Input,
    ShownValue,
    Value,
    shown_value,
)
from rules.leads.series import KEPT_DAYS, Series, State, Sums

AGES = frozenset({Aggregate.DAYS_SINCE_FIRST, Aggregate.DAYS_SINCE_LAST})


def compute_features(  # noqa: PLR0913 (what a value follows from)
    inputs: Collection[Input],
    state: State,
    contacts: Iterable[Contact],
    as_of: datetime,
    *,
    grace_days: int,
    only_time_dependent: bool = False,
) -> dict[str, ShownValue]:
    """Return the features of some inputs by name, as people read them. grace_days: see evaluate_features().

    only_time_dependent: leave out the features that time alone does not change.
    """
    wanted: dict[str, Feature] = {
        feature.name: feature
        for feature in FEATURES
        if feature.input in inputs and (feature.is_time_dependent or not only_time_dependent)
    }
    values = evaluate_features(wanted.values(), state, contacts, as_of, grace_days)
    return {name: shown_value(wanted[name], value) for name, value in values.items()}


def evaluate_features(
    features: Iterable[Feature],
    state: State,
    campaigns: Iterable[Contact],
    as_of: datetime,
    grace_days: int = CAMPAIGN_GRACE_DAYS,
) -> dict[str, Value]:
    """Return the values of features by name, at an instant (UTC) that no event of the state is later than.

    grace_days: an unanswered campaign counts as ignored when it was sent at least so many dates ago.
    Features of one input and one window share the sums of that window, because adding up dates is most of
    the work.
    """
    today, contacts = as_of.toordinal(), list(campaigns)
    windows = dict[tuple[Input, int | None], Sums]()
    values: dict[str, Value] = {}
    for feature in features:
        if feature.input is Input.CAMPAIGNS:
            values[feature.name] = _ignored_campaigns(contacts, today, grace_days)
        elif feature.aggregate in AGES:
            values[feature.name] = _age(feature.aggregate, state[feature.input], today)
        else:
            window = feature.input, feature.window_days
            if window not in windows:
                windows[window] = _window(state[feature.input], feature.window_days, today)
            count, amount = windows[window]
            # An average of all time leaves out foreign currencies, whose amounts are not in the sum.
            if feature.aggregate is Aggregate.AVERAGE and feature.window_days is None:
                count = state[feature.input].priced
            values[feature.name] = _aggregate_window(feature.aggregate, count, amount)
    return values


def listing_date(state: State, campaigns: Iterable[Contact], as_of: datetime) -> str | None:
    """Return the date under which the schedule lists a lead; None if time changes no feature of it.

    A lead is listed until all of its windows are empty, and for 90 dates after it last did anything. The date
    is the newest one that still counts in any of these. Example: an order keeps a lead listed for 365 dates.
    """
    today = as_of.toordinal()
    # Dates, each with the number of days for which it counts
    dates = [(state[Input.ACTIVITY].last, ACTIVE_DAYS_MAX)]
    dates += [(next(reversed(state[input_].days), 0), days) for input_, days in KEPT_DAYS.items()]
    dates += [(campaign.sent or 0, CAMPAIGN_DAYS_MAX) for campaign in campaigns if not campaign.reacted]
    day = max((day for day, days in dates if day > today - days), default=0)
    return date.fromordinal(day).isoformat() if day else None


def rounded_mean(total: int, count: int) -> int:
    """Return total / count, rounded half up (towards plus infinity), in whole numbers."""
    return (2 * total + count) // (2 * count)


def _age(aggregate: Aggregate, series: Series, today: int) -> int | None:
    day = series.first if aggregate is Aggregate.DAYS_SINCE_FIRST else series.last
    return today - day if day else None


def _aggregate_window(aggregate: Aggregate, count: int, amount: int) -> Value:
    if aggregate is Aggregate.SUM:
        return amount
    if aggregate is Aggregate.COUNT:
        return count
    if aggregate is Aggregate.ANY:
        return count > 0
    return rounded_mean(amount, count) if count > 0 else None


def _window(series: Series, window_days: int | None, today: int) -> Sums:
    if window_days is None:
        return series.count, series.amount
    sums = [day_sums for day, day_sums in series.days.items() if day > today - window_days]
    return sum(count for count, _ in sums), sum(amount for _, amount in sums)


def _ignored_campaigns(campaigns: Iterable[Contact], today: int, grace_days: int) -> int:
    oldest, newest = today - CAMPAIGN_DAYS_MAX, today - grace_days
    return sum(
        not campaign.reacted and campaign.sent is not None and oldest < campaign.sent <= newest
        for campaign in campaigns
    )
