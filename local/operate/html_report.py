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
from adapters.operations import Freshness, FreshnessUnknown
from adapters.platform.items import decode_item
from adapters.platform.objects import NoObject, Objects
from adapters.platform.tables import scan_all
from analytics.lake.layout import report_key
from analytics.warehouse.warehouse import Warehouse
from local.command import FILE_OUT, command, option
from local.paths import REPORT, ROOT, WAREHOUSE
from local.plots import THEME, Figure, bars, columns, grid, share, whole
from local.stack import Stack, load
from local.stores import lake_of
from rules.engagement.earnings import points_by_type

STYLE = ROOT / "local" / "operate" / "report.css"
DAYS_SHOWN = 60
WEEK = 7
LENGTHS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180, 365)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
Rows = list[dict[str, Any]]
MART_DAYS_SHOWN, MONTHS_SHOWN = 180, 18
PLACES_SHOWN = 8
RETENTION_SHOWN = 12
CLEAN = "None."


def scan_table(stack: Stack, table: str) -> Rows:
    """Return all items of a table. Only for the amounts of data of a laptop."""
    return list(map(decode_item, scan_all(stack.client("dynamodb"), TableName=stack.tables[table])))


def write(stack: Stack, path: Path) -> None:
    """Write the report."""
    profiles = scan_table(stack, "UserStreaks")
    days = [each for each in scan_table(stack, "DailyActivity") if each["activity_date"] not in UNDATED]
    events, entries = scan_table(stack, "BPEvents"), len(scan_table(stack, "RewardsLedger"))
    longest = max((each.get("longest_streak", 0) for each in profiles), default=0)
    facts = [
        (whole(len(profiles)), "users"),
        (whole(len(events)), "events, each counted once"),
        (whole(sum(each["points_earned"] for each in days)), "points earned"),
        (whole(longest), "days, the longest streak"),
        (whole(entries), "ledger entries"),
    ]
    live = (
        [_daily(days), _hours(events), _lengths(profiles), _points(days), _inequality(days)] if days else []
    )
    sections = [("As it is now", live), ("What the warehouse knows", _marts())]
    path.write_text(_page(facts, sections, last_night(lake_of(stack))), encoding="utf-8")


def last_night(lake: Objects) -> str:
    """Return the newest report of a nightly run, as written for people (Markdown), or that there is none."""
    try:
        run = Freshness(lake).nightly(datetime.now(UTC))
        return lake.get(report_key(run["run_id"], "md")).decode()
    except FreshnessUnknown:
        return "There was no nightly run yet: `streakline recompute` does one."
    except NoObject:
        return f"The run {run['run_id']} left no report for people."


def _marts() -> list[Figure]:
    if not WAREHOUSE.exists():
        return []
    from analytics.warehouse.warehouse import warehouse_at

    return figures(warehouse_at(f"duckdb:{WAREHOUSE}"))


def _recent(days: Rows) -> Iterator[tuple[date, Rows]]:
    """Yield the newest dates with their rows, from the first one that has any."""
    by_date: dict[date, Rows] = {}
    for each in days:
        by_date.setdefault(date.fromisoformat(each["activity_date"]), []).append(each)
    last = max(by_date)
    for back in range(min((last - min(by_date)).days, DAYS_SHOWN - 1), -1, -1):
        day = last - timedelta(days=back)
        yield day, by_date.get(day, [])


def _daily(days: Rows) -> Figure:
    dates, active, events = [], [], []
    for day, some in _recent(days):
        dates.append(f"{day}")
        active.append(len(some))
        events.append(sum(each["events_count"] for each in some))
    best = max(zip(active, dates, strict=True))
    sentence = (
        f"{whole(sum(active[-WEEK:]) / len(active[-WEEK:]))} people a day were active in the last week,"
        f" with {sum(events) / max(1, sum(active)):.1f} events each; most on {best[1]}: {whole(best[0])}."
    )
    return columns("Active people a day", sentence, dates, {"people": active})


def _hours(events: Rows) -> Figure:
    """Count events by weekday and hour, in the local time that each event was written with."""
    moments = [datetime.fromisoformat(each["occurred_at"].replace("Z", "+00:00")) for each in events]
    counts = Counter((each.weekday(), each.hour) for each in moments)
    (weekday, hour), _ = counts.most_common(1)[0] if counts else ((0, 0), 0)
    sentence = (
        f"In people's own time; the busiest hour is {WEEKDAYS[weekday]}, {hour:02}:00."
        " A reminder fits before it."
    )
    cells = [[counts[day, each] for each in range(24)] for day in range(WEEK)]
    heads = [f"{each:02}h" for each in range(24)]
    return grid("When people are active", sentence, [each[:3] for each in WEEKDAYS], heads, cells)


def _lengths(profiles: Rows) -> Figure:
    lengths = [each.get("longest_streak", 0) for each in profiles]
    shown = [each for each in LENGTHS if each <= max(lengths, default=1)] or [1]
    reached = [sum(length >= each for length in lengths) / max(1, len(lengths)) for each in shown]
    week = sum(length >= WEEK for length in lengths) / max(1, len(lengths))
    sentence = f"{share(week)} of all people have had a week or more without a gap."
    return columns(
        "How long streaks get",
        sentence,
        [f"{each}" for each in shown],
        {"people who got there": reached},
        shown=share,
        head="Days",
    )


def _points(days: Rows) -> Figure:
    by_type = Counter[str]()
    for each in days:
        by_type.update(points_by_type(each["points_by_cap"]))
    rows = [(name.replace("_", " ").capitalize(), float(points)) for name, points in by_type.most_common(12)]
    if not by_type.total():
        return Figure("What earns points", "Nothing has earned points yet.", (), ())
    first, total = by_type.most_common(1)[0], by_type.total()
    sentence = (
        f"{share(first[1] / total)} of all points are earned by one kind of event:"
        f" {first[0].replace('_', ' ').lower()}."
    )
    return bars("What earns points", sentence, rows, heads=("Event", "Points"))


def _inequality(days: Rows) -> Figure:
    per_user = Counter[str]()
    for each in days:
        per_user[each["user_id"]] += each["events_count"]
    counts = sorted(per_user.values(), reverse=True)
    rows = []
    for part, name in (
        (0.01, "the most active 1 %"),
        (0.1, "the most active 10 %"),
        (0.5, "the most active half"),
    ):
        head = counts[: max(1, round(part * len(counts)))]
        rows.append((f"{name.capitalize()}: {whole(len(head))}", sum(head) / sum(counts)))
    sentence = f"Who is active: the most active tenth of all people make {share(rows[1][1])} of all events."
    return bars("How unequal activity is", sentence, rows, share, ("People", "Share of events"))


def _latest(mart: str, column: str, count: int) -> str:
    newest = f"SELECT * FROM {mart} ORDER BY {column} DESC LIMIT {count}"
    return f"SELECT * FROM ({newest}) AS newest ORDER BY {column}"


RETENTION = """SELECT cohort_kind, cohort_start, period_number, retention FROM marts.retention_cohorts
ORDER BY cohort_kind, cohort_start, period_number"""
LEADERS = f"""SELECT period_start, user_id, points, place FROM marts.leaderboard_history
WHERE period_kind = 'month' AND place <= {PLACES_SHOWN} ORDER BY period_start DESC, place, user_id"""
FUNNEL = """SELECT step_number, step, CAST(SUM(users) AS BIGINT) AS users FROM marts.funnel_by_source
GROUP BY step_number, step ORDER BY step_number"""
QUALITY = """SELECT entity,
CAST(SUM(curated) AS BIGINT) AS curated, CAST(SUM(duplicates) AS BIGINT) AS duplicates,
CAST(SUM(quarantined) AS BIGINT) AS quarantined FROM marts.data_quality GROUP BY entity ORDER BY entity"""


def _column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def _months(rows: Rows, name: str) -> list[str]:
    return [f"{row[name]:%Y-%m}" for row in rows]


def draw_daily(rows: Rows) -> Figure:
    """Columns by date: returning users, with new users on top."""
    new, old = _column(rows, "new_users"), _column(rows, "returning_users")
    part = sum(new[-WEEK:]) / max(1, sum(new[-WEEK:]) + sum(old[-WEEK:]))
    sentence = f"{share(part)} of the last week's active people came for the first time."
    return columns(
        "New and returning people",
        sentence,
        [f"{row['date_day']}" for row in rows],
        {"returning": old, "new": new},
    )


def draw_monthly(rows: Rows) -> Figure:
    """Columns by month: users kept, regained and new."""
    series = {
        name: _column(rows, f"{of}_users")
        for name, of in (("kept", "retained"), ("back", "resurrected"), ("new", "new"))
    }
    last = rows[-1]
    sentence = (
        f"In the last month {whole(last['retained_users'])} people were kept from the one before,"
        f" and {whole(last['new_users'])} are new."
    )
    return columns("People by month", sentence, _months(rows, "activity_month"), series, head="Month")


def draw_stickiness(rows: Rows) -> Figure:
    """Columns: daily by 30-day actives."""
    shown = [row for row in rows if row["stickiness"] is not None]
    values = _column(shown, "stickiness")
    mean = sum(values[-WEEK:]) / max(1, len(values[-WEEK:]))
    sentence = (
        f"On a day of the last week {share(mean)} of the people of 30 days were there:"
        f" each comes on {30 * mean:.0f} days a month."
    )
    return columns(
        "Stickiness",
        sentence,
        [f"{row['date_day']}" for row in shown],
        {"daily by 30-day actives": values},
        shown=share,
    )


def draw_retention(rows: Rows) -> Figure:
    """A grid of cohorts: the share that was active again; by week where there are few months."""
    months = {row["cohort_start"] for row in rows if row["cohort_kind"] == "month"}
    has_weeks = any(row["cohort_kind"] == "week" for row in rows)
    kind = "week" if has_weeks and len(months) < 3 else "month"
    mine = [row for row in rows if row["cohort_kind"] == kind]
    cohorts = sorted({row["cohort_start"] for row in mine})[-RETENTION_SHOWN:]
    held = {(row["cohort_start"], row["period_number"]): row["retention"] for row in mine}
    periods = 1 + min(
        max((number for cohort, number in held if cohort in cohorts), default=0), RETENTION_SHOWN
    )

    def position(day: date) -> int:
        return day.year * 12 + day.month if kind == "month" else day.toordinal() // WEEK

    last = max(position(cohort) + number for cohort, number in held)
    # A period that has not begun yet stays empty; it is not 0.
    cells = [
        [held.get((cohort, n), 0.0) if position(cohort) + n <= last else None for n in range(periods)]
        for cohort in cohorts
    ]
    again = [row[1] for row in cells[:-1] if len(row) > 1 and row[1] is not None]
    title, heads = f"Who comes back, {kind}s after the first", [f"+{n}" for n in range(periods)]
    names = [f"{each:%Y-%m}" if kind == "month" else f"{each:%d %b}" for each in cohorts]
    if not again:
        sentence = f"It is too early to say: nobody's first {kind} is over."
        return Figure(
            title,
            sentence,
            ("First", *heads),
            [
                (name, *("" if each is None else share(each) for each in row))
                for name, row in zip(names, cells, strict=True)
            ],
        )
    sentence = f"A {kind} after their first {share(sum(again) / len(again))} of the people are there again."
    return grid(title, sentence, names, heads, cells, shown=share, has_numbers=True)


def draw_survival(rows: Rows) -> Figure:
    """Columns: the share of all runs that get to each length."""
    shown = [row for row in rows if row["streak_days"] in LENGTHS]
    week = next((row["survival"] for row in shown if row["streak_days"] == WEEK), 0.0)
    sentence = f"{share(week)} of all runs of active days reach a week."
    names = [f"{row['streak_days']}" for row in shown]
    return columns(
        "Runs that reach so many days",
        sentence,
        names,
        {"runs": _column(shown, "survival")},
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
    losses = [(1 - after / before, name) for (_, before), (name, after) in pairwise(steps) if before]
    sentence = (
        f"The largest loss is before “{max(losses)[1].lower()}”: {share(max(losses)[0])} do not get there."
        if losses
        else ""
    )
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
        (_latest("marts.daily_actives", "date_day", MART_DAYS_SHOWN), draw_daily),
        (_latest("marts.monthly_actives", "activity_month", MONTHS_SHOWN), draw_monthly),
        (_latest("marts.stickiness", "date_day", MART_DAYS_SHOWN), draw_stickiness),
        (RETENTION, draw_retention),
        ("SELECT streak_days, survival FROM marts.streak_survival ORDER BY streak_days", draw_survival),
        (_latest("marts.points_liability", "date_day", MART_DAYS_SHOWN), draw_liability),
        (FUNNEL, draw_funnel),
        (LEADERS, draw_leaders),
        (_latest("marts.revenue_by_month", "month_start", MONTHS_SHOWN * 2), draw_revenue),
        (QUALITY, draw_quality),
    )
    found = [(warehouse.rows(sql), draw) for sql, draw in plots]
    return [draw(rows) for rows, draw in found if rows]


def night_html(text: str) -> str:
    """Return a nightly run's report (Markdown) as HTML: tables, and a sentence of what is clean."""
    intro, *parts = re.split(r"(?m)^## ", re.sub(r"(?m)^# .*$", "", text))
    sections = [(title.strip(), rest.strip()) for title, _, rest in (each.partition("\n") for each in parts)]
    clean = [title for title, rest in sections if rest == CLEAN]
    told = [html.escape(each) for each in intro.split("\n\n") if each.strip()]
    if clean:
        told.append(f"<b>Nothing to tell of</b>: {html.escape(', '.join(clean).lower())}.")
    drawn = "".join(_night_figure(title, rest).html() for title, rest in sections if rest != CLEAN)
    return "".join(f"<p>{each}</p>" for each in told) + f"<div class=plots>{drawn}</div>"


def _night_figure(title: str, text: str) -> Figure:
    lines = text.splitlines()
    table = [
        [each.strip().replace("_", " ") for each in line.strip("| ").split(" |")]
        for line in lines
        if line.startswith("|") and set(line) - set("|-: ")
    ]
    sentence = " ".join(line for line in lines if not line.startswith("|"))
    head, *rows = table or [[]]
    return Figure(title, sentence, head, [row + [""] * (len(head) - len(row)) for row in rows])


def _page(
    facts: Sequence[tuple[str, str]], sections: Sequence[tuple[str, Sequence[Figure]]], last_night: str
) -> str:
    numbers = "".join(f"<li><b>{html.escape(n)}</b> {html.escape(what)}</li>" for n, what in facts)
    body = "".join(
        f"<h2>{html.escape(name)}</h2><div class=plots>{''.join(each.html() for each in some)}</div>"
        for name, some in sections
        if some
    )
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Streakline: report</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
{THEME.read_text()}{STYLE.read_text()}</style></head><body><main>
<h1>Report</h1>
<p class=note>Made {made} from the live tables, the warehouse and the last nightly run.</p>
<ul>{numbers}</ul>{body}
<h2>The last nightly run</h2>
{night_html(last_night)}
</main></body></html>
"""


@command("report", "report --out report.html")
@option("--out", type=FILE_OUT, default=REPORT, help="where to write it", show_default=".local/report.html")
def report(out: Path) -> None:
    """Write the laptop cloud's data as one HTML file of plots."""
    write(load(), out)
    print(out)
