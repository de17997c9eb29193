"""The laptop cloud's data as one HTML file with plots. The file needs no other file and no network.

The live tables come first, then the warehouse's marts, then what the last nightly run found. Every plot has a
sentence that says what it shows, and the figures behind it.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.engagement.account_items import UNDATED
from adapters.freshness import Freshness, FreshnessUnknown
from adapters.platform.items import decode_item
from adapters.platform.objects import NoObject, Objects
from adapters.platform.tables import scan_all
from analytics.lake.layout import report_key
from analytics.reconcile.run_report import EMPTY_TABLE
from analytics.warehouse.warehouse import warehouse_at
from local.command import FILE_OUT, command, option
from local.operate.mart_plots import STREAK_LENGTHS, WEEK, mart_plots
from local.paths import REPORT, ROOT, WAREHOUSE
from local.plots import THEME, Figure, bars, columns, grid, share, whole
from local.stack import Stack, load
from local.stores import lake_of
from rules.engagement.earnings import points_by_type

STYLE = ROOT / "local" / "operate" / "report.css"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# How much a plot shows at most.
DAYS_MAX = 60
EVENT_TYPES_MAX = 12
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
    warehouse_plots = mart_plots(warehouse_at(f"duckdb:{WAREHOUSE}")) if WAREHOUSE.exists() else []
    sections = [("As it is now", live_plots), ("What the warehouse knows", warehouse_plots)]
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


def _newest_dates(days: Rows) -> Iterator[tuple[date, Rows]]:
    """Yield the DAYS_MAX newest dates, each with its users' rows; also dates without activity.

    days: at least one.
    """
    by_date: dict[date, Rows] = {}
    for row in days:
        by_date.setdefault(date.fromisoformat(row["activity_date"]), []).append(row)
    last = max(by_date)
    for days_back in range(min((last - min(by_date)).days, DAYS_MAX - 1), -1, -1):
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
    # The share of people whose longest streak has at least so many days.
    shares = {
        length: sum(streak >= length for streak in longest) / max(1, len(longest))
        for length in {*lengths, WEEK}
    }
    sentence = f"{share(shares[WEEK])} of all people have had a week or more without a gap."
    return columns(
        "How long streaks get",
        sentence,
        [f"{length}" for length in lengths],
        {"people who got there": [shares[length] for length in lengths]},
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
    rows = []
    for part, name in ((0.01, "1 %"), (0.1, "10 %"), (0.5, "half")):
        most_active = counts[: max(1, round(part * len(counts)))]
        rows.append((f"The most active {name}: {whole(len(most_active))}", sum(most_active) / sum(counts)))
    _, (_, of_tenth), _ = rows
    sentence = f"Who is active: the most active tenth of all people make {share(of_tenth)} of all events."
    return bars("How unequal activity is", sentence, rows, share, ("People", "Share of events"))


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
