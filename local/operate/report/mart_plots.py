"""How each of the warehouse's marts is drawn."""

from datetime import date
from typing import Any

from matplotlib.axes import Axes

from local.operate.report.html_report import ACCENT, HEAT, INK, PALE, SECOND

MONTHS_SHOWN = 18
PLACES_SHOWN = 8
SOURCES_SHOWN = 5
COLORS = (ACCENT, SECOND, "#f7b267", "#3d9970", "#8e6c8a", "#6d1a36", "#57a0d3", "#b0a48f")
Rows = list[dict[str, Any]]


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
