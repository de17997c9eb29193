"""The laptop cloud's data as one HTML file with plots. The file needs no other file and no network.

The live tables come first, then the warehouse's marts, then what the last nightly run found. Every plot has a
sentence and the figures behind it.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
from local.plots import THEME, Figure, columns, share, whole
from local.stack import Stack, load
from local.stores import lake_of
from rules.engagement.earnings import points_by_type

STYLE = ROOT / "local" / "operate" / "report.css"
DATES_MAX, TYPES_MAX = 60, 12  # in a plot
STREAK_LENGTHS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180, 365)
RETENTION = """SELECT cohort_start, retention FROM marts.retention_cohorts
WHERE cohort_kind = 'week' AND period_number = 1 ORDER BY cohort_start"""
SURVIVAL = f"""SELECT streak_days, survival FROM marts.streak_survival
WHERE streak_days IN ({", ".join(map(str, STREAK_LENGTHS))}) ORDER BY streak_days"""
LEADERS = """SELECT user_id, points, place FROM marts.leaderboard_history
WHERE period_kind = 'month' AND place <= 8
AND period_start = (SELECT MAX(period_start) FROM marts.leaderboard_history WHERE period_kind = 'month')
ORDER BY place, user_id"""
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
    longest = max((profile.get("longest_streak", 0) for profile in profiles), default=0)
    facts = [  # numbers, each with what it counts
        (whole(len(profiles)), "users"),
        (whole(sum(day["events_count"] for day in days)), "events, each counted once"),
        (whole(sum(day["points_earned"] for day in days)), "points earned"),
        (whole(longest), "days, the longest streak"),
    ]
    warehouse_plots = mart_plots(warehouse_at(f"duckdb:{WAREHOUSE}")) if WAREHOUSE.exists() else []
    sections = [("As it is now", live_plots(profiles, days)), ("What the warehouse knows", warehouse_plots)]
    path.write_text(_page(facts, sections, last_night(lake_of(stack))), encoding="utf-8")


def last_night(lake: Objects) -> str:
    """Return the newest report of a nightly run, as written for people (Markdown), or that there is none."""
    try:
        run = Freshness(lake).nightly()
        return lake.get(report_key(run["run_id"], "md")).decode()
    except FreshnessUnknown:
        return "There was no nightly run yet: `streakline night run` does one."
    except NoObject:
        return f"The run {run['run_id']} left no report for people."


def live_plots(profiles: Rows, days: Rows) -> list[Figure]:
    """Draw the live tables; nothing before the first active date. days: as in the table DailyActivity."""
    if not days:
        return []
    people = Counter(row["activity_date"] for row in days)
    dates = sorted(people)[-DATES_MAX:]
    longest = [profile.get("longest_streak", 0) for profile in profiles]
    reached = {
        f"{length}": sum(streak >= length for streak in longest)
        for length in STREAK_LENGTHS
        if length <= max(longest, default=0)
    }
    earned = Counter[str]()
    for day in days:
        earned.update(points_by_type(day["points_by_cap"]))
    types = dict(earned.most_common(TYPES_MAX))
    return [
        columns(
            "Active people a day",
            "Dates without anybody are left out.",
            dates,
            {"people": [people[date] for date in dates]},
        ),
        columns(
            "How long streaks get",
            "People whose longest streak has at least so many days.",
            list(reached),
            {"people": [*reached.values()]},
            head="Days",
        ),
        columns(
            "What earns points",
            "Points by type of event.",
            list(types),
            {"points": [*types.values()]},
            head="Type",
        ),
    ]


@dataclass(frozen=True, slots=True)
class MartPlot:
    """A mart's rows as columns, or as a table where no series is drawn."""

    title: str
    sentence: str
    sql: str  # in the order of the plot
    name: str  # the column of what stands below
    series: Mapping[str, str]  # label -> column
    shown: Callable[[float], str] = whole
    head: str = "Date"
    is_table: bool = False

    def draw(self, rows: Rows) -> Figure:
        """Return the plot. A date is shown by itself, a month without its day."""
        length = len("2026-03") if self.head == "Month" else None
        names = [f"{row[self.name]}"[:length] for row in rows]
        values = {
            label: [max(0.0, float(row[column] or 0)) for row in rows]
            for label, column in self.series.items()
        }
        if self.is_table:
            cells = zip(*([self.shown(value) for value in column] for column in values.values()), strict=True)
            table = [(name, *shown) for name, shown in zip(names, cells, strict=True)]
            return Figure(self.title, self.sentence, (self.head, *self.series), table)
        return columns(self.title, self.sentence, names, values, shown=self.shown, head=self.head)


def _newest_rows(mart: str, column: str, count: int = 180) -> str:
    newest = f"SELECT * FROM {mart} ORDER BY {column} DESC LIMIT {count}"
    return f"SELECT * FROM ({newest}) AS newest ORDER BY {column}"


MART_PLOTS = (
    MartPlot(
        "New and returning people",
        "Active people of each date.",
        _newest_rows("marts.daily_actives", "date_day"),
        "date_day",
        {"returning": "returning_users", "new": "new_users"},
    ),
    MartPlot(
        "People by month",
        "Kept from the month before, back after a break, and new.",
        _newest_rows("marts.monthly_actives", "activity_month", 18),
        "activity_month",
        {"kept": "retained_users", "back": "resurrected_users", "new": "new_users"},
        head="Month",
    ),
    MartPlot(
        "Stickiness",
        "Of the active people of 30 days, the share that was there on a date.",
        _newest_rows("marts.stickiness", "date_day"),
        "date_day",
        {"daily by 30-day actives": "stickiness"},
        share,
    ),
    MartPlot(
        "Who comes back",
        "Of the people of a first week, the share that was there a week later.",
        RETENTION,
        "cohort_start",
        {"there again": "retention"},
        share,
        "First week",
    ),
    MartPlot(
        "Runs that reach so many days",
        "Of all runs of active days, the share that reaches a length.",
        SURVIVAL,
        "streak_days",
        {"runs": "survival"},
        share,
        "Days",
    ),
    MartPlot(
        "Points that people can spend",
        "This is what is owed.",
        _newest_rows("marts.points_liability", "date_day"),
        "date_day",
        {"points": "outstanding"},
    ),
    MartPlot(
        "How far people get", "People who reached a step.", FUNNEL, "step", {"people": "users"}, head="Step"
    ),
    MartPlot(
        "Leaders of the month",
        "Who earned most in the newest month.",
        LEADERS,
        "user_id",
        {"Place": "place", "Points": "points"},
        head="User",
        is_table=True,
    ),
    MartPlot(
        "Revenue by month",
        "In the currency of the purchases.",
        _newest_rows("marts.revenue_by_month", "month_start", 36),
        "month_start",
        {"revenue": "revenue"},
        head="Month",
    ),
    MartPlot(
        "Rows that came in",
        "Refused rows wait with their reason; doubles count once.",
        QUALITY,
        "entity",
        {"Kept": "curated", "Doubles": "duplicates", "Refused": "quarantined"},
        head="Entity",
        is_table=True,
    ),
)


def mart_plots(warehouse: Warehouse) -> list[Figure]:
    """Read the marts and draw them. A mart without rows is left out."""
    return [plot.draw(rows) for plot in MART_PLOTS if (rows := warehouse.rows(plot.sql))]


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
