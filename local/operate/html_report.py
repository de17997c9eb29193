"""The laptop cloud's data as one HTML file with plots. The file needs no other file and no network.

The live tables come first, then the warehouse's marts, then what the last nightly run found. Every plot has a
sentence and the figures behind it.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.freshness import Freshness, FreshnessUnknown
from adapters.platform.items import decode_item
from adapters.platform.objects import NoObject, Objects
from adapters.platform.tables import scan_all
from analytics.lake.layout import report_key
from analytics.reconcile.run_report import EMPTY_TABLE
from analytics.warehouse.warehouse import Warehouse, warehouse_at
from local.command import FILE_OUT, command, option
from local.paths import REPORT, WAREHOUSE
from local.plots import Figure, bars, columns, file_page, readable, share, spoken, whole
from local.stack import Stack, load
from local.stores import lake_of
from rules.engagement.earnings import points_by_type
from rules.lake.table_items import is_of_other_thing

DATES_MAX, TYPES_MAX = 60, 12  # in a plot
DATED = ("Date", "Month", "First date", "First week")  # heads of what stands in the order of time
UNFINISHED = "The last column of a plot is unfinished: its date, week or month is not over yet."
BOLD = re.compile(r"\*\*(.+?)\*\*")
STREAK_LENGTHS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180, 365)
# A week of which nobody came back has no row of the next week, if that has begun.
NEXT_WEEK = """SELECT cohorts.cohort_start, COALESCE(later.retention, 0) AS retention
FROM marts.retention_cohorts AS cohorts
LEFT JOIN marts.retention_cohorts AS later
ON later.cohort_kind = 'week' AND later.period_number = 1 AND later.cohort_start = cohorts.cohort_start
WHERE cohorts.cohort_kind = 'week' AND cohorts.period_number = 0
AND CAST(DATEADD(day, 7, cohorts.cohort_start) AS DATE) <= (SELECT MAX(date_day) FROM marts.daily_actives)
ORDER BY cohorts.cohort_start"""
NEXT_DATE = f"""SELECT first_date, retention FROM (
SELECT users.first_active_date AS first_date,
CAST(COUNT(days.user_id) AS DOUBLE PRECISION) / CAST(COUNT(*) AS DOUBLE PRECISION) AS retention
FROM dimensions.users AS users
LEFT JOIN facts.daily_activity AS days ON days.user_id = users.user_id AND days.events_count > 0
AND days.activity_date = CAST(DATEADD(day, 1, users.first_active_date) AS DATE)
WHERE users.first_active_date < (SELECT MAX(date_day) FROM marts.daily_actives)
GROUP BY users.first_active_date ORDER BY users.first_active_date DESC LIMIT {DATES_MAX}
) AS newest ORDER BY first_date"""
# Before there are 30 dates, everybody who was there in 30 days has been there lately.
STICKINESS = """SELECT date_day, stickiness FROM marts.stickiness
WHERE date_day >= (SELECT CAST(DATEADD(day, 29, MIN(date_day)) AS DATE) FROM marts.daily_actives)
ORDER BY date_day DESC LIMIT 180"""
SURVIVAL = f"""SELECT streak_days, survival FROM marts.streak_survival
WHERE streak_days IN ({", ".join(map(str, STREAK_LENGTHS))}) ORDER BY streak_days"""
LEADERS = """SELECT user_id, points, place FROM marts.leaderboard_history
WHERE period_kind = 'month' AND place <= 8 AND user_id NOT LIKE 'erased/%'
AND period_start = (SELECT MAX(period_start) FROM marts.leaderboard_history WHERE period_kind = 'month')
ORDER BY place, user_id"""
BOARDS = """SELECT results.board_name, COUNT(*) AS people, MAX(results.points) AS best,
AVG(CAST(results.points AS DOUBLE PRECISION)) AS average
FROM marts.board_results AS results
INNER JOIN (
SELECT board_name, MAX(first_date) AS first_date FROM marts.board_results GROUP BY board_name
) AS newest
ON newest.board_name = results.board_name AND newest.first_date = results.first_date
GROUP BY results.board_name ORDER BY results.board_name"""
DIVISIONS = """SELECT division, COUNT(*) AS people FROM marts.league_results
WHERE first_date = (SELECT MAX(first_date) FROM marts.league_results)
GROUP BY division ORDER BY people DESC, division"""
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
    days = [
        day
        for day in scan_table(stack, "DailyActivity")
        if not is_of_other_thing("DailyActivity", day["user_id"])
    ]
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
    people = Counter(date.fromisoformat(row["activity_date"]) for row in days)
    first, last = min(people), max(people)
    count = min((last - first).days + 1, DATES_MAX)
    dates = [last - timedelta(days=ago) for ago in range(count - 1, -1, -1)]
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
            "People with at least one event. Level or rising is good. A sudden fall means that the app is "
            "in trouble, or that events do not arrive.",
            list(map(str, dates)),
            {"people": [people[date] for date in dates]},
        ),
        bars(
            "How long streaks get",
            "People whose longest streak has at least so many days. A slow fall is good. Where the bars "
            "shorten at once, people give up.",
            list(reached),
            {"people": [*reached.values()]},
            head="Days",
        ),
        bars(
            "What earns points",
            "Points by type of event, ever. The longest bar should be what you want people to do. If it is "
            "not, change the book of rules.",
            list(map(spoken, types)),
            {"points": [*types.values()]},
            head="Type",
        ),
    ]


@dataclass(frozen=True, slots=True)
class MartPlot:
    """A mart's rows: of dates as columns, of a series of categories as bars, of several as a table."""

    title: str
    sentence: str
    sql: str  # in the order of the plot
    name: str  # the column of what stands below
    series: Mapping[str, str]  # label -> column
    shown: Callable[[float], str] = whole
    head: str = "Date"

    @property
    def is_dated(self) -> bool:
        """Whether it stands in the order of time."""
        return self.head in DATED

    def draw(self, rows: Rows) -> Figure:
        """Return the plot. A date is shown by itself, a month without its day."""
        length = len("2026-03") if self.head == "Month" else None
        names = [f"{row[self.name]}"[:length] for row in rows]
        values = {
            label: [max(0.0, float(row[column] or 0)) for row in rows]
            for label, column in self.series.items()
        }
        if self.is_dated:
            return columns(self.title, self.sentence, names, values, shown=self.shown, head=self.head)
        if self.head != "User":
            names = list(map(spoken, names))
        if len(values) == 1:
            return bars(self.title, self.sentence, names, values, shown=self.shown, head=self.head)
        cells = zip(names, *(map(self.shown, column) for column in values.values()), strict=True)
        return Figure(self.title, self.sentence, (self.head, *self.series), list(cells))


def _newest_rows(mart: str, column: str, count: int = 180) -> str:
    newest = f"SELECT * FROM {mart} ORDER BY {column} DESC LIMIT {count}"
    return f"SELECT * FROM ({newest}) AS newest ORDER BY {column}"


MART_PLOTS = (
    MartPlot(
        "New and returning people",
        "A growing part that returns is good. If almost all are new, nobody stays.",
        _newest_rows("marts.daily_actives", "date_day"),
        "date_day",
        {"returning": "returning_users", "new": "new_users"},
    ),
    MartPlot(
        "People by month",
        "Kept from the month before, back after a break, and new. A growing part that is kept is good.",
        _newest_rows("marts.monthly_actives", "activity_month", 18),
        "activity_month",
        {"kept": "retained_users", "back": "resurrected_users", "new": "new_users"},
        head="Month",
    ),
    MartPlot(
        "Stickiness",
        "Of the people who were there in 30 days, the share of one date. 20% means that a person comes on 6 "
        "days of 30. More is better.",
        f"SELECT date_day, stickiness FROM ({STICKINESS}) AS newest ORDER BY date_day",
        "date_day",
        {"daily by 30-day actives": "stickiness"},
        share,
    ),
    MartPlot(
        "Who comes back on the next date",
        "Of the people of a first date, the share that was there on the next one. More is better: it "
        "shows first what a change of the app has done.",
        NEXT_DATE,
        "first_date",
        {"there again": "retention"},
        share,
        "First date",
    ),
    MartPlot(
        "Who comes back in the next week",
        "Of the people of a first week, the share that was there in the week after it. More is better.",
        NEXT_WEEK,
        "cohort_start",
        {"there again": "retention"},
        share,
        "First week",
    ),
    MartPlot(
        "People whose longest streak reached so many days",
        "Of all people who have had a streak, the share whose longest one reached a length. A slow fall is "
        "good. Where it is fast, a reward or a reminder helps most.",
        SURVIVAL,
        "streak_days",
        {"people": "survival"},
        share,
        "Days",
    ),
    MartPlot(
        "Points that people can spend",
        "You owe these points at the end of a date. If they only rise, nobody redeems: the rewards are too "
        "dear or unknown.",
        _newest_rows("marts.points_liability", "date_day"),
        "date_day",
        {"points": "outstanding"},
    ),
    MartPlot(
        "How far people get",
        "People who have ever done so. Each step is counted by itself, so a later one may have more people "
        "than an earlier one.",
        FUNNEL,
        "step",
        {"people": "users"},
        head="Step",
    ),
    MartPlot(
        "Leaders of the month",
        "Who earned most in the newest month. A leader far ahead of all others may be cheating.",
        LEADERS,
        "user_id",
        {"Partition": "place", "Points": "points"},
        head="User",
    ),
    MartPlot(
        "Boards when they were last final",
        "Who had points in the newest period that is final. If the best is far above the average, the others "
        "give up: a shorter period, groups or leagues help.",
        BOARDS,
        "board_name",
        {"People": "people", "Best": "best", "Average": "average"},
        head="Board",
    ),
    MartPlot(
        "Divisions of the last league",
        "People whom the newest league has ranked. As a rule, a higher division should have fewer.",
        DIVISIONS,
        "division",
        {"people": "people"},
        head="Division",
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
        "Doubles are harmless: they count once. Refused rows are bad: they wait with their reason.",
        QUALITY,
        "entity",
        {"Kept": "curated", "Doubles": "duplicates", "Refused": "quarantined"},
        head="Entity",
    ),
)


def mart_plots(warehouse: Warehouse) -> list[Figure]:
    """Read the marts and draw them. A mart without rows is left out."""
    with warehouse.kept_open():
        return [plot.draw(rows) for plot in MART_PLOTS if (rows := warehouse.rows(plot.sql))]


def night_html(text: str) -> str:
    """Return a nightly run's report (Markdown) as HTML: its tables, and a list of what is clean."""
    introduction, *sections = re.split(r"(?m)^## ", re.sub(r"(?m)^# .*$", "", readable(text)))
    paragraphs = BOLD.sub(r"<b>\1</b>", html.escape(introduction)).split("\n\n")
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs if paragraph.strip())
    clean_titles, tables = list[str](), ""
    for section in sections:
        title, _, content = section.partition("\n")
        if content.strip() == EMPTY_TABLE:
            clean_titles.append(title.strip())
        else:
            tables += _night_table(title.strip(), content.strip()).html()
    if clean_titles:
        checks = "1 check" if len(clean_titles) == 1 else f"{len(clean_titles)} checks"
        items = "".join(f"<li>{html.escape(title)}</li>" for title in clean_titles)
        body += f"<details><summary>{checks} found nothing wrong</summary><ul>{items}</ul></details>"
    return f"{body}<div class=plots>{tables}</div>"


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
    return file_page(
        "Streakline: report",
        f"""<h1>Report</h1>
<p class=note>Made {written_at} from the live tables, the warehouse and the last nightly run.
{UNFINISHED}</p>
<ul class=facts>{items}</ul>{body}
<h2>The last nightly run</h2>
{night_html(last_night)}""",
    )
