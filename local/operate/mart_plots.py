"""Plots of the warehouse's marts, for the report (local/operate/html_report.py)."""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any

from analytics.warehouse.warehouse import Warehouse
from local.plots import Figure, bars, columns, grid, share, whole

WEEK = 7
STREAK_LENGTHS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180, 365)
# How much a plot shows at most.
DAYS_MAX, MONTHS_MAX = 180, 18
LEADERS_MAX = 8
COHORTS_MAX = 12  # and as many periods of each
RETENTION = """SELECT cohort_kind, cohort_start, period_number, retention FROM marts.retention_cohorts
ORDER BY cohort_kind, cohort_start, period_number"""
LEADERS = f"""SELECT period_start, user_id, points, place FROM marts.leaderboard_history
WHERE period_kind = 'month' AND place <= {LEADERS_MAX} ORDER BY period_start DESC, place, user_id"""
FUNNEL = """SELECT step_number, step, CAST(SUM(users) AS BIGINT) AS users FROM marts.funnel_by_source
GROUP BY step_number, step ORDER BY step_number"""
QUALITY = """SELECT entity,
CAST(SUM(curated) AS BIGINT) AS curated, CAST(SUM(duplicates) AS BIGINT) AS duplicates,
CAST(SUM(quarantined) AS BIGINT) AS quarantined FROM marts.data_quality GROUP BY entity ORDER BY entity"""
Rows = list[dict[str, Any]]


def mart_plots(warehouse: Warehouse) -> list[Figure]:
    """Read the marts and draw them. A mart without rows is left out."""
    plots = (
        (_newest_rows("marts.daily_actives", "date_day", DAYS_MAX), draw_daily),
        (_newest_rows("marts.monthly_actives", "activity_month", MONTHS_MAX), draw_monthly),
        (_newest_rows("marts.stickiness", "date_day", DAYS_MAX), draw_stickiness),
        (RETENTION, draw_retention),
        ("SELECT streak_days, survival FROM marts.streak_survival ORDER BY streak_days", draw_survival),
        (_newest_rows("marts.points_liability", "date_day", DAYS_MAX), draw_liability),
        (FUNNEL, draw_funnel),
        (LEADERS, draw_leaders),
        (_newest_rows("marts.revenue_by_month", "month_start", MONTHS_MAX * 2), draw_revenue),
        (QUALITY, draw_quality),
    )
    return [draw(rows) for sql, draw in plots if (rows := warehouse.rows(sql))]


def _newest_rows(mart: str, column: str, count: int) -> str:
    """Return the query for the last rows of a mart by a column, in its order."""
    newest = f"SELECT * FROM {mart} ORDER BY {column} DESC LIMIT {count}"
    return f"SELECT * FROM ({newest}) AS newest ORDER BY {column}"


def _column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def _months(rows: Rows, name: str) -> list[str]:
    return [f"{row[name]:%Y-%m}" for row in rows]


def draw_daily(rows: Rows) -> Figure:
    """Columns by date: returning users, with new users on top."""
    new, returning = _column(rows, "new_users"), _column(rows, "returning_users")
    new_share = sum(new[-WEEK:]) / max(1, sum(new[-WEEK:]) + sum(returning[-WEEK:]))
    sentence = f"{share(new_share)} of the last week's active people came for the first time."
    return columns(
        "New and returning people",
        sentence,
        [f"{row['date_day']}" for row in rows],
        {"returning": returning, "new": new},
    )


def draw_monthly(rows: Rows) -> Figure:
    """Columns by month: users kept, regained and new."""
    series = {
        label: _column(rows, f"{group}_users")
        for label, group in (("kept", "retained"), ("back", "resurrected"), ("new", "new"))
    }
    last = rows[-1]
    sentence = (
        f"In the last month {whole(last['retained_users'])} people were kept from the one before,"
        f" and {whole(last['new_users'])} are new."
    )
    return columns("People by month", sentence, _months(rows, "activity_month"), series, head="Month")


def draw_stickiness(rows: Rows) -> Figure:
    """Columns: daily by 30-day actives."""
    rows = [row for row in rows if row["stickiness"] is not None]
    values = _column(rows, "stickiness")
    mean = sum(values[-WEEK:]) / max(1, len(values[-WEEK:]))
    sentence = (
        f"On a day of the last week {share(mean)} of the people of 30 days were there:"
        f" each comes on {30 * mean:.0f} days a month."
    )
    return columns(
        "Stickiness",
        sentence,
        [f"{row['date_day']}" for row in rows],
        {"daily by 30-day actives": values},
        shown=share,
    )


def draw_retention(rows: Rows) -> Figure:
    """A grid of cohorts: the share that was active again; by week where there are few months."""
    months = {row["cohort_start"] for row in rows if row["cohort_kind"] == "month"}
    has_weeks = any(row["cohort_kind"] == "week" for row in rows)
    kind = "week" if has_weeks and len(months) < 3 else "month"
    retention = {
        (row["cohort_start"], row["period_number"]): row["retention"]
        for row in rows
        if row["cohort_kind"] == kind
    }
    cohorts = sorted({cohort for cohort, _ in retention})[-COHORTS_MAX:]
    cells = _retention_cells(retention, cohorts, kind)
    heads = [f"+{period}" for period in range(len(cells[0]))]
    names = [f"{cohort:%Y-%m}" if kind == "month" else f"{cohort:%d %b}" for cohort in cohorts]
    title = f"Who comes back, {kind}s after the first"
    # The shares of the period after the first one, without the newest cohort's, whose period is not over.
    second_shares = [row[1] for row in cells[:-1] if len(row) > 1 and row[1] is not None]
    if not second_shares:
        sentence = f"It is too early to say: nobody's first {kind} is over."
        table = [
            (name, *("" if value is None else share(value) for value in row))
            for name, row in zip(names, cells, strict=True)
        ]
        return Figure(title, sentence, ("First", *heads), table)
    mean = share(sum(second_shares) / len(second_shares))
    sentence = f"A {kind} after their first {mean} of the people are there again."
    return grid(title, sentence, names, heads, cells, shown=share, has_numbers=True)


def _retention_cells(
    retention: dict[tuple[date, int], float], cohorts: Sequence[date], kind: str
) -> list[list[float | None]]:
    """Return the share of each cohort (row) and period (column); None for a period that has not begun yet."""
    last_number = max(number for cohort, number in retention if cohort in cohorts)
    newest_period = max(_calendar_number(cohort, kind) + number for cohort, number in retention)
    return [
        [
            retention.get((cohort, period), 0.0)
            if _calendar_number(cohort, kind) + period <= newest_period
            else None
            for period in range(1 + min(last_number, COHORTS_MAX))
        ]
        for cohort in cohorts
    ]


def _calendar_number(day: date, kind: str) -> int:
    """Return the number of a date's month or week, counted from an arbitrary one."""
    return day.year * 12 + day.month if kind == "month" else day.toordinal() // WEEK


def draw_survival(rows: Rows) -> Figure:
    """Columns: the share of all runs that get to each length."""
    rows = [row for row in rows if row["streak_days"] in STREAK_LENGTHS]
    of_week = next((row["survival"] for row in rows if row["streak_days"] == WEEK), 0.0)
    sentence = f"{share(of_week)} of all runs of active days reach a week."
    names = [f"{row['streak_days']}" for row in rows]
    return columns(
        "Runs that reach so many days",
        sentence,
        names,
        {"runs": _column(rows, "survival")},
        shown=share,
        head="Days",
    )


def draw_liability(rows: Rows) -> Figure:
    """Columns by date: points that can still be spent."""
    owed = [max(0, row["outstanding"]) for row in rows]
    spent = sum(row["redeemed"] - row["reversed"] for row in rows)
    sentence = (
        f"{whole(owed[-1])} points can still be spent: this is what is owed."
        f" {whole(spent)} have been spent in the time shown."
    )
    return columns(
        "Points that people can spend", sentence, [f"{row['date_day']}" for row in rows], {"points": owed}
    )


def draw_leaders(rows: Rows) -> Figure:
    """The newest month's leaders, as a table."""
    newest = [row for row in rows if row["period_start"] == rows[0]["period_start"]]
    sentence = f"Who earned most in {rows[0]['period_start']:%B %Y}."
    table = [(f"{row['place']}", row["user_id"], whole(row["points"])) for row in newest]
    return Figure("Leaders of the month", sentence, ("Place", "User", "Points"), table)


def draw_funnel(rows: Rows) -> Figure:
    """Bars by step."""
    steps = [(row["step"].replace("_", " ").capitalize(), float(row["users"])) for row in rows]
    # For each step the share of people that does not get there from the step before.
    losses = [(1 - after / before, name) for (_, before), (name, after) in pairwise(steps) if before]
    sentence = ""
    if losses:
        loss, step = max(losses)
        sentence = f"The largest loss is before “{step.lower()}”: {share(loss)} do not get there."
    return bars("How far people get", sentence, steps, heads=("Step", "People"))


def draw_revenue(rows: Rows) -> Figure:
    """Columns by month."""
    revenue = [float(row["revenue"]) for row in rows]
    sentence = (
        f"{whole(sum(_column(rows, 'purchases')))} purchases of {whole(sum(revenue))} in all."
        " Amounts are in the currency of the purchases."
    )
    return columns(
        "Revenue by month", sentence, _months(rows, "month_start"), {"revenue": revenue}, head="Month"
    )


def draw_quality(rows: Rows) -> Figure:
    """What became of the rows that came in, as a table."""
    refused, doubles = sum(_column(rows, "quarantined")), sum(_column(rows, "duplicates"))
    sentence = (
        f"{whole(refused)} rows were refused, and wait with their reason;"
        f" {whole(doubles)} came more than once, and count once."
    )
    names = ("curated", "duplicates", "quarantined")
    table = [(row["entity"].replace("_", " "), *(whole(row[name]) for name in names)) for row in rows]
    return Figure("Rows that came in", sentence, ("Entity", "Kept", "Doubles", "Refused"), table)
