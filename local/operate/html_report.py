"""The laptop cloud's data as one HTML file with plots. The file needs no other file and no network.

The live tables come first, then the warehouse's marts and what the last nightly run found, if there was one.
"""

import html
import io
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from adapters.engagement.account_items import UNDATED
from adapters.operations import Freshness, FreshnessUnknown
from adapters.platform.items import decode_item
from adapters.platform.objects import NoObject, Objects, S3Objects
from analytics.lake.layout import report_key
from analytics.warehouse.warehouse import Warehouse
from local.command import FILE_OUT, command, option
from local.paths import REPORT, WAREHOUSE
from local.stack import Stack, load
from rules.engagement.earnings import points_by_type

mpl.use("svg")


INK, ACCENT, SECOND, PALE = "#22313f", "#e4572e", "#2e86ab", "#dfe6e9"
HEAT = mpl.colors.LinearSegmentedColormap.from_list("heat", ["#f4f6f7", "#f7b267", ACCENT, "#6d1a36"])
DAYS_SHOWN = 60
Rows = list[dict[str, Any]]


def scan_table(stack: Stack, table: str) -> Rows:
    """Return all items of a table. Only for the amounts of data of a laptop."""
    client, found = stack.client("dynamodb"), []
    for page in client.get_paginator("scan").paginate(TableName=stack.tables[table]):
        found += [decode_item(each) for each in page["Items"]]
    return found


def write(stack: Stack, path: Path) -> None:
    """Write the report."""
    profiles = scan_table(stack, "UserStreaks")
    days = [each for each in scan_table(stack, "DailyActivity") if each["activity_date"] not in UNDATED]
    events, ledger = scan_table(stack, "BPEvents"), scan_table(stack, "RewardsLedger")
    plots = [
        ("Events and active users per day", lambda axes: _daily(axes, days)),
        ("When people are active, in their own time", lambda axes: _hours(axes, events)),
        ("Longest streaks", lambda axes: _streaks(axes, profiles)),
        ("How unequal activity is", lambda axes: _zipf(axes, days)),
        ("Points issued, by event type", lambda axes: _points(axes, days)),
        ("The busiest accounts' balances, entry by entry", lambda axes: _balances(axes, ledger)),
    ]
    facts = [
        (f"{len(profiles):,}", "users"),
        (f"{len(events):,}", "events, each counted once"),
        (f"{sum(each['points_earned'] for each in days):,}", "points issued"),
        (
            f"{max((each.get('longest_streak', 0) for each in profiles), default=0)}",
            "days, the longest streak",
        ),
        (f"{len(ledger):,}", "ledger entries"),
    ]
    sections = [("The live tables", plots), ("The warehouse", _marts())]
    drawn = [(name, [(title, _svg(draw)) for title, draw in some]) for name, some in sections if some]
    lake = S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])
    path.write_text(_page(facts, drawn, last_night(lake)), encoding="utf-8")


def last_night(lake: Objects) -> str:
    """Return the newest report of a nightly run, as written for people (Markdown), or that there is none."""
    try:
        run = Freshness(lake).nightly(datetime.now(UTC))
        return lake.get(report_key(run["run_id"], "md")).decode()
    except FreshnessUnknown:
        return "There was no nightly run yet: `streakline night run` does one."
    except NoObject:
        return f"The run {run['run_id']} left no report for people."


def _marts() -> list[tuple[str, Callable[[Axes], None]]]:
    if not WAREHOUSE.exists():
        return []
    from analytics.warehouse.warehouse import warehouse_at

    return figures(warehouse_at(f"duckdb:{WAREHOUSE}"))


def _svg(draw: Callable[[Axes], None]) -> str:
    with plt.rc_context({"font.size": 9, "axes.edgecolor": INK, "text.color": INK, "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=(6.4, 3.3), layout="constrained")
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
    return out.getvalue()[out.getvalue().index("<svg") :]


def _recent(days: Rows) -> Iterator[tuple[date, Rows]]:
    last = max((date.fromisoformat(each["activity_date"]) for each in days), default=datetime.now(UTC).date())
    for back in range(DAYS_SHOWN - 1, -1, -1):
        day = last - timedelta(days=back)
        yield day, [each for each in days if each["activity_date"] == day.isoformat()]


def _daily(axes: Axes, days: Rows) -> None:
    recent = list(_recent(days))
    dates: Any = [day for day, _ in recent]
    axes.bar(
        dates, [sum(each["events_count"] for each in some) for _, some in recent], color=PALE, label="events"
    )
    axes.plot(dates, [len(some) for _, some in recent], color=ACCENT, lw=2, label="active users")
    axes.legend(frameon=False, loc="upper left")
    axes.tick_params(axis="x", rotation=30)


def _hours(axes: Axes, events: Rows) -> None:
    """Count events by weekday and hour, in the local time that each event was written with."""
    counts = Counter(
        (datetime.fromisoformat(text).weekday(), datetime.fromisoformat(text).hour)
        for text in (each["occurred_at"].replace("Z", "+00:00") for each in events)
    )
    grid = [[counts[weekday, hour] for hour in range(24)] for weekday in range(7)]
    axes.imshow(grid, aspect="auto", cmap=HEAT)
    axes.set_yticks(range(7), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    axes.set_xticks(range(0, 24, 3), [f"{hour:02}:00" for hour in range(0, 24, 3)])
    axes.spines[:].set_visible(False)


def _streaks(axes: Axes, profiles: Rows) -> None:
    lengths = [each.get("longest_streak", 0) for each in profiles]
    longest = max(lengths, default=1)
    alive = [sum(length >= day for length in lengths) / max(len(lengths), 1) for day in range(1, longest + 1)]
    axes.step(range(1, longest + 1), alive, where="post", color=SECOND, lw=2)
    axes.fill_between(range(1, longest + 1), alive, step="post", color=SECOND, alpha=0.15)
    axes.set_xlabel("days in a row")
    axes.set_ylabel("share of users who got there")
    axes.set_ylim(0, 1)


def _zipf(axes: Axes, days: Rows) -> None:
    per_user = Counter[str]()
    for each in days:
        per_user[each["user_id"]] += each["events_count"]
    counts = sorted(per_user.values(), reverse=True)
    axes.loglog(range(1, len(counts) + 1), counts, "o", ms=3, color=ACCENT)
    axes.set_xlabel("user, by rank")
    axes.set_ylabel("events")


def _points(axes: Axes, days: Rows) -> None:
    by_type = Counter[str]()
    for each in days:
        by_type.update(points_by_type(each["points_by_cap"]))
    names = [name for name, _ in by_type.most_common()][::-1]
    axes.barh(
        [name.replace("_", " ").lower() for name in names], [by_type[name] for name in names], color=SECOND
    )


def _balances(axes: Axes, ledger: Rows) -> None:
    entries = Counter(each["account_id"] for each in ledger)
    for account, _ in entries.most_common(6):
        mine = sorted(
            (each for each in ledger if each["account_id"] == account), key=lambda each: each["seq"]
        )
        axes.plot([each["seq"] for each in mine], [each["balance"] for each in mine], lw=1.5, label=account)
    axes.set_xlabel("ledger entry")
    axes.set_ylabel("balance")
    axes.legend(frameon=False, fontsize=7)


STYLE = f"""body {{ font: 16px/1.5 system-ui, sans-serif; color: {INK}; background: #fbfaf8; margin: 0 auto;
  max-width: 1180px; padding: 2rem 1rem; }}
h2 {{ font-weight: 600; font-size: 1.2rem; margin: 2rem 0 .8rem; }}
h1 {{ font-weight: 650; letter-spacing: -.02em; margin: 0; }}
ul {{ display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; list-style: none; padding: 0; color: #576574; }}
li b {{ color: {ACCENT}; font-size: 1.7rem; display: block; line-height: 1.1; }}
main {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1.2rem; }}
figure {{ margin: 0; padding: 1rem; background: #fff; border-radius: 12px; box-shadow: 0 1px 4px #0001; }}
figcaption {{ font-weight: 600; margin-bottom: .5rem; }}
svg {{ width: 100%; height: auto; }}
pre {{ padding: 1rem; background: #fff; border-radius: 12px; overflow-x: auto; }}
footer {{ color: #8395a7; font-size: .85rem; margin-top: 1.5rem; }}
"""


def _page(
    facts: list[tuple[str, str]], sections: list[tuple[str, list[tuple[str, str]]]], last_night: str
) -> str:
    numbers = "".join(f"<li><b>{html.escape(n)}</b> {html.escape(what)}</li>" for n, what in facts)
    body = "".join(
        f"<h2>{html.escape(name)}</h2><main>"
        + "".join(
            f"<figure><figcaption>{html.escape(title)}</figcaption>{svg}</figure>" for title, svg in plots
        )
        + "</main>"
        for name, plots in sections
    )
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Streakline</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
{STYLE}</style></head><body>
<h1>Streakline</h1><ul>{numbers}</ul>{body}
<h2>The last nightly run</h2><pre>{html.escape(last_night)}</pre>
<footer>Made {made} from the live tables and the warehouse.</footer>
</body></html>
"""


# How each of the warehouse's marts is drawn.


MONTHS_SHOWN = 18
PLACES_SHOWN = 8
SOURCES_SHOWN = 5
COLORS = (ACCENT, SECOND, "#f7b267", "#3d9970", "#8e6c8a", "#6d1a36", "#57a0d3", "#b0a48f")


def _column(rows: Rows, name: str) -> Any:
    return [row[name] for row in rows]


def _tilt(axes: Axes) -> None:
    axes.tick_params(axis="x", rotation=30)


def draw_daily(axes: Axes, rows: Rows) -> None:
    """Bars by date: new users, with returning users on top."""
    days = _column(rows, "date_day")
    axes.bar(days, _column(rows, "new_users"), color=ACCENT, width=1, label="new")
    axes.bar(
        days,
        _column(rows, "returning_users"),
        bottom=_column(rows, "new_users"),
        color=PALE,
        width=1,
        label="returning",
    )
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    _tilt(axes)


def draw_monthly(axes: Axes, rows: Rows) -> None:
    """Bars by month: users kept, regained and new."""
    months = [f"{row['activity_month']:%Y-%m}" for row in rows]
    bottom = [0] * len(rows)
    parts = (("retained_users", SECOND), ("resurrected_users", "#f7b267"), ("new_users", ACCENT))
    for name, color in parts:
        axes.bar(months, _column(rows, name), bottom=bottom, color=color, label=name.removesuffix("_users"))
        bottom = [low + high for low, high in zip(bottom, _column(rows, name), strict=True)]
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    _tilt(axes)


def draw_stickiness(axes: Axes, rows: Rows) -> None:
    """A line: daily by 30-day actives."""
    shown = [row for row in rows if row["stickiness"] is not None]
    axes.plot(_column(shown, "date_day"), _column(shown, "stickiness"), color=ACCENT, lw=1.5)
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter("{x:.0%}")
    _tilt(axes)


def draw_retention(axes: Axes, rows: Rows) -> None:
    """A grid: cohorts by month, and the share that was active again."""
    cohorts = sorted({row["cohort_start"] for row in rows})[-MONTHS_SHOWN:]
    periods = min(max(row["period_number"] for row in rows), MONTHS_SHOWN) + 1
    held = {(row["cohort_start"], row["period_number"]): row["retention"] for row in rows}
    last = max(_months(row["cohort_start"]) + row["period_number"] for row in rows)
    # A period that has not begun yet stays empty; it is not 0.
    grid = [
        [held.get((cohort, n), 0.0) if _months(cohort) + n <= last else float("nan") for n in range(periods)]
        for cohort in cohorts
    ]
    image = axes.imshow(grid, aspect="auto", cmap=HEAT, vmin=0, vmax=1)
    axes.figure.colorbar(image, ax=axes, format="{x:.0%}", fraction=0.04)
    axes.set_yticks(range(len(cohorts)), [f"{cohort:%Y-%m}" for cohort in cohorts], fontsize=7)
    axes.set_xticks(range(periods))
    axes.set_xlabel("months after the first")
    axes.spines[:].set_visible(False)


def _months(day: date) -> int:
    return day.year * 12 + day.month


def draw_survival(axes: Axes, rows: Rows) -> None:
    """Steps: the share of users who get to each length."""
    days, shares = _column(rows, "streak_days"), _column(rows, "survival")
    axes.step(days, shares, where="post", color=SECOND, lw=2)
    axes.fill_between(days, shares, step="post", color=SECOND, alpha=0.15)
    axes.set_xlabel("days in a row")
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter("{x:.0%}")


def draw_liability(axes: Axes, rows: Rows) -> None:
    """Areas by date: all points issued so far, divided into those still owed and those gone."""
    days = _column(rows, "date_day")
    gone, total = [], rows[0]["redeemed"] + rows[0]["expired"] - rows[0]["reversed"]
    for row in rows[1:]:
        gone.append(total)
        total += row["redeemed"] + row["expired"] - row["reversed"]
    gone.append(total)
    owed = _column(rows, "outstanding")
    axes.stackplot(
        days, owed, gone, colors=[ACCENT, PALE], labels=["outstanding", "redeemed or expired"], step="post"
    )
    if len(rows) == 1:
        axes.bar(days, owed, color=ACCENT)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    _tilt(axes)


def draw_leaders(axes: Axes, rows: Rows) -> None:
    """Places by month, a line for each leader."""
    months = sorted({row["period_start"] for row in rows})[-MONTHS_SHOWN:]
    where = {month: index for index, month in enumerate(months)}
    places: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if row["period_start"] in where:
            places.setdefault(row["user_id"], []).append((where[row["period_start"]], row["place"]))
    # The colored lines are the users who led longest. The other lines are context.
    known = sorted(places, key=lambda user: (-len(places[user]), user))
    for number, user in enumerate(known):
        at, place = zip(*sorted(places[user]), strict=True)
        named = number < len(COLORS)
        axes.plot(
            at, place, "o-", ms=4, lw=2 if named else 1, color=COLORS[number] if named else PALE,
            label=user if named else None, zorder=2 if named else 1,
        )  # fmt: skip
    axes.set_ylim(PLACES_SHOWN + 0.5, 0.5)
    axes.set_yticks(range(1, PLACES_SHOWN + 1))
    axes.set_xticks(range(len(months)), [f"{month:%Y-%m}" for month in months], rotation=30, fontsize=7)
    axes.legend(frameon=False, fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))


def draw_funnel(axes: Axes, rows: Rows) -> None:
    """Bars by step, one colour a source."""
    size = {row["source"]: row["users"] for row in rows if row["step_number"] == 1}
    sources = sorted(size, key=lambda source: (-size[source], source))[:SOURCES_SHOWN]
    steps = list(dict.fromkeys(_column(rows, "step")))
    height = 0.8 / len(sources)
    for number, source in enumerate(sources):
        shares = [row["share"] for row in rows if row["source"] == source]
        at = [index + number * height for index in range(len(steps))]
        axes.barh(at, shares, height=height, color=COLORS[number], label=f"{source} ({size[source]:,})")
    axes.set_yticks([index + 0.4 - height / 2 for index in range(len(steps))], steps)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


def draw_revenue(axes: Axes, rows: Rows) -> None:
    """Bars by month."""
    months = [f"{row['month_start']:%Y-%m}" for row in rows]
    axes.bar(months, [float(row["revenue"]) for row in rows], color=SECOND)
    axes.set_xticks(range(0, len(months), max(1, len(months) // 12)))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _tilt(axes)


def draw_quality(axes: Axes, rows: Rows) -> None:
    """Bars by entity: rows kept, doubled and refused."""
    names = [row["entity"].replace("_", " ") for row in rows]
    left = [0.0] * len(rows)
    totals = [row["curated"] + row["duplicates"] + row["quarantined"] or 1 for row in rows]
    for part, color in (("curated", SECOND), ("duplicates", PALE), ("quarantined", ACCENT)):
        shares = [row[part] / total for row, total in zip(rows, totals, strict=True)]
        axes.barh(names, shares, left=left, color=color, label=part)
        left = [low + high for low, high in zip(left, shares, strict=True)]
    for index, (row, total) in enumerate(zip(rows, totals, strict=True)):
        text = f"{total:,} in, {row['duplicates']:,} duplicates, {row['quarantined']:,} refused"
        axes.text(0.01, index, text, va="center", color=INK, fontsize=7)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.legend(frameon=False, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


# Which marts of the warehouse the report plots, and the rows for each plot.


MART_DAYS_SHOWN = 180
Draw = Callable[[Axes], None]


def figures(warehouse: Warehouse) -> list[tuple[str, Draw]]:
    """Read the marts; return titles, each with what draws the plot. A mart without rows is left out."""
    plots: list[tuple[str, str, Callable[[Axes, Rows], None]]] = [
        ("Daily active users", _latest("marts.daily_actives", "date_day", MART_DAYS_SHOWN), draw_daily),
        (
            "Monthly active users",
            _latest("marts.monthly_actives", "activity_month", MONTHS_SHOWN),
            draw_monthly,
        ),
        (
            "Stickiness: daily / 30-day actives",
            _latest("marts.stickiness", "date_day", MART_DAYS_SHOWN),
            draw_stickiness,
        ),
        ("Retention: active again, months after the first", RETENTION, draw_retention),
        ("Streaks: how many users get to a length", SURVIVAL, draw_survival),
        (
            "Points: what is owed",
            _latest("marts.points_liability", "date_day", MART_DAYS_SHOWN),
            draw_liability,
        ),
        ("Leaders by month", LEADERS, draw_leaders),
        ("How far users get, by source", FUNNEL, draw_funnel),
        (
            "Revenue by month",
            _latest("marts.revenue_by_month", "month_start", MONTHS_SHOWN * 2),
            draw_revenue,
        ),
        ("What became of the rows that came in", QUALITY, draw_quality),
    ]
    found = [(title, warehouse.rows(sql), draw) for title, sql, draw in plots]
    return [(title, _bound(draw, rows)) for title, rows, draw in found if rows]


def _bound(draw: Callable[[Axes, Rows], None], rows: Rows) -> Draw:
    return lambda axes: draw(axes, rows)


def _latest(mart: str, column: str, count: int) -> str:
    newest = f"SELECT * FROM {mart} ORDER BY {column} DESC LIMIT {count}"
    return f"SELECT * FROM ({newest}) AS newest ORDER BY {column}"


RETENTION = """SELECT cohort_start, period_number, retention, cohort_users FROM marts.retention_cohorts
WHERE cohort_kind = 'month' ORDER BY cohort_start, period_number"""
SURVIVAL = "SELECT streak_days, survival FROM marts.streak_survival ORDER BY streak_days"
LEADERS = f"""SELECT period_start, user_id, points, place FROM marts.leaderboard_history
WHERE period_kind = 'month' AND place <= {PLACES_SHOWN} ORDER BY period_start, place, user_id"""
FUNNEL = (
    "SELECT source, step_number, step, users, share FROM marts.funnel_by_source ORDER BY source, step_number"
)
QUALITY = """SELECT entity,
CAST(SUM(curated) AS BIGINT) AS curated, CAST(SUM(duplicates) AS BIGINT) AS duplicates,
CAST(SUM(quarantined) AS BIGINT) AS quarantined FROM marts.data_quality GROUP BY entity ORDER BY entity"""


@command("report", "report --out report.html")
@option("--out", type=FILE_OUT, default=REPORT, help="where to write it", show_default=".local/report.html")
def report(out: Path) -> None:
    """Write the laptop cloud's data as one HTML file of plots."""
    write(load(), out)
    print(out)
