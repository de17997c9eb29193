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

from adapters.engagement.account_items import UNDATED
from adapters.operations import Freshness, FreshnessUnknown
from adapters.platform.items import plain
from adapters.platform.objects import NoObject, Objects, S3Objects
from analytics.lake.layout import report_key
from local.paths import WAREHOUSE
from local.stack import Stack
from rules.engagement.earnings import points_by_type

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

INK, ACCENT, SECOND, PALE = "#22313f", "#e4572e", "#2e86ab", "#dfe6e9"
HEAT = mpl.colors.LinearSegmentedColormap.from_list("heat", ["#f4f6f7", "#f7b267", ACCENT, "#6d1a36"])
DAYS_SHOWN = 60
Rows = list[dict[str, Any]]


def scan_table(stack: Stack, table: str) -> Rows:
    """Return all items of a table. Only for the amounts of data of a laptop."""
    client, found = stack.client("dynamodb"), []
    for page in client.get_paginator("scan").paginate(TableName=stack.tables[table]):
        found += [plain(each) for each in page["Items"]]
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
        return "There was no nightly run yet: `streakline recompute` does one."
    except NoObject:
        return f"The run {run['run_id']} left no report for people."


def _marts() -> list[tuple[str, Callable[[Axes], None]]]:
    if not WAREHOUSE.exists():
        return []
    from analytics.warehouse.warehouse import warehouse_at
    from local.operate.report.mart_figures import figures

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
