"""The laptop cloud's data as one HTML file with plots. The file needs no other file and no network.

The live tables come first, then the warehouse's marts, then what the last nightly run found. Every plot has a
sentence that says what it shows, and the figures behind it.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from adapters.engagement.account_items import UNDATED
from adapters.freshness import Freshness, FreshnessUnknown
from adapters.platform.items import decode_item
from adapters.platform.objects import NoObject, Objects
from adapters.platform.tables import scan_all
from analytics.lake.layout import report_key
from analytics.reconcile.run_report import EMPTY_TABLE
from analytics.warehouse.warehouse import Warehouse, warehouse_at
from local.command import FILE_OUT, command, option
from local.paths import REPORT, ROOT, WAREHOUSE
from local.plots import THEME, Figure, bars, columns, grid, share, whole
from local.stack import Stack, load
from local.stores import lake_of
from rules.engagement.earnings import points_by_type

STYLE = ROOT / "local" / "operate" / "report.css"
WEEK = 7
STREAK_LENGTHS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180, 365)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# How much a plot shows at most.
LIVE_DAYS_MAX, MART_DAYS_MAX, MONTHS_MAX = 60, 180, 18
EVENT_TYPES_MAX = 12
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


@command("report", "report --out report.html")
@option("--out", type=FILE_OUT, default=REPORT, help="where to write it", show_default=".local/report.html")
def report(out: Path) -> None:
    """Write the laptop cloud's data as one HTML file of plots."""
    write(load(), out)
    print(out)


def scan_table(stack: Stack, table: str) -> Rows:
    """Return all items of a table. Only for the amounts of data of a laptop."""
    return list(map(decode_item, scan_all(stack.client("dynamodb"), TableName=stack.tables[table])))


def write(stack: Stack, path: Path) -> None:
    """Write the report of a stack's live tables, the laptop's warehouse and the last nightly run."""
    profiles = scan_table(stack, "UserStreaks")
    # Without the items that are of a user and not of a date.
    days = [day for day in scan_table(stack, "DailyActivity") if day["activity_date"] not in UNDATED]
    events, entries = scan_table(stack, "BPEvents"), scan_table(stack, "RewardsLedger")
    longest = max((profile.get("longest_streak", 0) for profile in profiles), default=0)
    facts = [  # numbers, each with what it counts
        (whole(len(profiles)), "users"),
        (whole(len(events)), "events, each counted once"),
        (whole(sum(day["points_earned"] for day in days)), "points earned"),
        (whole(longest), "days, the longest streak"),
        (whole(len(entries)), "ledger entries"),
    ]
    live_plots = (
        [_daily(days), _hours(events), _lengths(profiles), _points(days), _inequality(days)] if days else []
    )
    sections = [("As it is now", live_plots), ("What the warehouse knows", _mart_plots())]
    path.write_text(_page(facts, sections, last_night(lake_of(stack))), encoding="utf-8")


def last_night(lake: Objects) -> str:
    """Return the newest report of a nightly run, as written for people (Markdown), or that there is none."""
    try:
        run = Freshness(lake).nightly(datetime.now(UTC))
        return lake.get(report_key(run["run_id"], "md")).decode()
    except FreshnessUnknown:
        return "There was no nightly run yet: `streakline night run` does one."
    except NoObject:
        return f"The run {run['run_id']} left no report for people."


def _mart_plots() -> list[Figure]:
    return figures(warehouse_at(f"duckdb:{WAREHOUSE}")) if WAREHOUSE.exists() else []


def _newest_dates(days: Rows) -> Iterator[tuple[date, Rows]]:
    """Yield the LIVE_DAYS_MAX newest dates, each with its users' rows; also dates without activity.

    days: at least one.
    """
    by_date: dict[date, Rows] = {}
    for row in days:
        by_date.setdefault(date.fromisoformat(row["activity_date"]), []).append(row)
    last = max(by_date)
    for days_back in range(min((last - min(by_date)).days, LIVE_DAYS_MAX - 1), -1, -1):
        day = last - timedelta(days=days_back)
        yield day, by_date.get(day, [])


def _daily(days: Rows) -> Figure:
    dates: list[str] = []
    people: list[int] = []
    events: list[int] = []
    for day, rows in _newest_dates(days):
        dates.append(f"{day}")
        people.append(len(rows))
        events.append(sum(row["events_count"] for row in rows))
    most_people, busiest_date = max(zip(people, dates, strict=True))
    last_week = people[-WEEK:]
    sentence = (
        f"{whole(sum(last_week) / len(last_week))} people a day were active in the last week,"
        f" with {sum(events) / max(1, sum(people)):.1f} events each;"
        f" most on {busiest_date}: {whole(most_people)}."
    )
    return columns("Active people a day", sentence, dates, {"people": people})


def _hours(events: Rows) -> Figure:
    """Count events by weekday and hour, in the local time that each event was written with."""
    moments = [datetime.fromisoformat(event["occurred_at"].replace("Z", "+00:00")) for event in events]
    counts = Counter((moment.weekday(), moment.hour) for moment in moments)
    (weekday, hour), _ = counts.most_common(1)[0] if counts else ((0, 0), 0)
    sentence = (
        f"In people's own time; the busiest hour is {WEEKDAYS[weekday]}, {hour:02}:00."
        " A reminder fits before it."
    )
    cells = [[counts[day, hour_of_day] for hour_of_day in range(24)] for day in range(WEEK)]
    heads = [f"{hour_of_day:02}h" for hour_of_day in range(24)]
    return grid("When people are active", sentence, [name[:3] for name in WEEKDAYS], heads, cells)


def _lengths(profiles: Rows) -> Figure:
    longest: list[int] = [profile.get("longest_streak", 0) for profile in profiles]
    lengths = [length for length in STREAK_LENGTHS if length <= max(longest, default=1)] or [1]

    def reached(length: int) -> float:
        """Return the share of people whose longest streak has at least so many days."""
        return sum(streak >= length for streak in longest) / max(1, len(longest))

    sentence = f"{share(reached(WEEK))} of all people have had a week or more without a gap."
    return columns(
        "How long streaks get",
        sentence,
        [f"{length}" for length in lengths],
        {"people who got there": [reached(length) for length in lengths]},
        shown=share,
        head="Days",
    )


def _points(days: Rows) -> Figure:
    by_type = Counter[str]()
    for day in days:
        by_type.update(points_by_type(day["points_by_cap"]))
    rows = [
        (name.replace("_", " ").capitalize(), float(points))
        for name, points in by_type.most_common(EVENT_TYPES_MAX)
    ]
    if not by_type.total():
        return Figure("What earns points", "Nothing has earned points yet.", (), ())
    event_type, points = by_type.most_common(1)[0]
    sentence = (
        f"{share(points / by_type.total())} of all points are earned by one kind of event:"
        f" {event_type.replace('_', ' ').lower()}."
    )
    return bars("What earns points", sentence, rows, heads=("Event", "Points"))


def _inequality(days: Rows) -> Figure:
    """Show which share of all events the most active people make."""
    events_of_user = Counter[str]()
    for day in days:
        events_of_user[day["user_id"]] += day["events_count"]
    counts = sorted(events_of_user.values(), reverse=True)

    def most_active(part: float) -> list[int]:
        return counts[: max(1, round(part * len(counts)))]

    rows = [
        (
            f"The most active {name}: {whole(len(most_active(part)))}",
            sum(most_active(part)) / sum(counts),
        )
        for part, name in ((0.01, "1 %"), (0.1, "10 %"), (0.5, "half"))
    ]
    of_tenth = share(sum(most_active(0.1)) / sum(counts))
    sentence = f"Who is active: the most active tenth of all people make {of_tenth} of all events."
    return bars("How unequal activity is", sentence, rows, share, ("People", "Share of events"))


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
    rows_of_kind = [row for row in rows if row["cohort_kind"] == kind]
    cohorts = sorted({row["cohort_start"] for row in rows_of_kind})[-COHORTS_MAX:]
    retention = {(row["cohort_start"], row["period_number"]): row["retention"] for row in rows_of_kind}
    last_number = max((number for cohort, number in retention if cohort in cohorts), default=0)
    periods = 1 + min(last_number, COHORTS_MAX)

    def calendar_number(day: date) -> int:
        return day.year * 12 + day.month if kind == "month" else day.toordinal() // WEEK

    def cell(cohort: date, period: int) -> float | None:
        """Return a period's share; None, which stays empty, for one that has not begun yet."""
        has_begun = calendar_number(cohort) + period <= newest_period
        return retention.get((cohort, period), 0.0) if has_begun else None

    newest_period = max(calendar_number(cohort) + number for cohort, number in retention)
    cells = [[cell(cohort, period) for period in range(periods)] for cohort in cohorts]
    # The shares of the period after the first one, without the newest cohort's, whose period is not over.
    second_shares = [row[1] for row in cells[:-1] if len(row) > 1 and row[1] is not None]
    title, heads = f"Who comes back, {kind}s after the first", [f"+{period}" for period in range(periods)]
    names = [f"{cohort:%Y-%m}" if kind == "month" else f"{cohort:%d %b}" for cohort in cohorts]
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


def figures(warehouse: Warehouse) -> list[Figure]:
    """Read the marts and draw them. A mart without rows is left out."""
    plots = (
        (_newest_rows("marts.daily_actives", "date_day", MART_DAYS_MAX), draw_daily),
        (_newest_rows("marts.monthly_actives", "activity_month", MONTHS_MAX), draw_monthly),
        (_newest_rows("marts.stickiness", "date_day", MART_DAYS_MAX), draw_stickiness),
        (RETENTION, draw_retention),
        ("SELECT streak_days, survival FROM marts.streak_survival ORDER BY streak_days", draw_survival),
        (_newest_rows("marts.points_liability", "date_day", MART_DAYS_MAX), draw_liability),
        (FUNNEL, draw_funnel),
        (LEADERS, draw_leaders),
        (_newest_rows("marts.revenue_by_month", "month_start", MONTHS_MAX * 2), draw_revenue),
        (QUALITY, draw_quality),
    )
    return [draw(rows) for sql, draw in plots if (rows := warehouse.rows(sql))]


def night_html(text: str) -> str:
    """Return a nightly run's report (Markdown) as HTML: tables, and a sentence of what is clean."""
    introduction, *sections = re.split(r"(?m)^## ", re.sub(r"(?m)^# .*$", "", text))
    paragraphs = [html.escape(paragraph) for paragraph in introduction.split("\n\n") if paragraph.strip()]
    empty_titles, tables = [], ""
    for section in sections:
        title, _, content = section.partition("\n")
        if content.strip() == EMPTY_TABLE:
            empty_titles.append(title.strip())
        else:
            tables += _night_table(title.strip(), content.strip()).html()
    if empty_titles:
        paragraphs.append(f"<b>Nothing to tell of</b>: {html.escape(', '.join(empty_titles).lower())}.")
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs) + f"<div class=plots>{tables}</div>"


def _night_table(title: str, text: str) -> Figure:
    """Return a section of a night's report: its Markdown table as a table, all else as the sentence."""
    lines = text.splitlines()
    table_rows = [
        [cell.strip().replace("_", " ") for cell in line.strip("| ").split(" |")]
        for line in lines
        if line.startswith("|") and set(line) - set("|-: ")  # the line below the head has no other signs
    ]
    sentence = " ".join(line for line in lines if not line.startswith("|"))
    head, *rows = table_rows or [[]]
    return Figure(title, sentence, head, [row + [""] * (len(head) - len(row)) for row in rows])


def _page(
    facts: Sequence[tuple[str, str]], sections: Sequence[tuple[str, Sequence[Figure]]], last_night: str
) -> str:
    """Return the whole page. facts: numbers with what they count; sections: titles with their plots."""
    items = "".join(f"<li><b>{html.escape(number)}</b> {html.escape(what)}</li>" for number, what in facts)
    body = "".join(
        f"<h2>{html.escape(title)}</h2><div class=plots>{''.join(plot.html() for plot in plots)}</div>"
        for title, plots in sections
        if plots
    )
    written_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Streakline: report</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
{THEME.read_text()}{STYLE.read_text()}</style></head><body><main>
<h1>Report</h1>
<p class=note>Made {written_at} from the live tables, the warehouse and the last nightly run.</p>
<ul>{items}</ul>{body}
<h2>The last nightly run</h2>
{night_html(last_night)}
</main></body></html>
"""
