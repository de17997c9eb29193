"""Which marts of the warehouse the report plots, and the rows for each plot."""

from collections.abc import Callable

from matplotlib.axes import Axes

from analytics.warehouse.warehouse import Warehouse
from local.operate.report.mart_plots import (
    MONTHS_SHOWN,
    PLACES_SHOWN,
    Rows,
    draw_daily,
    draw_funnel,
    draw_leaders,
    draw_liability,
    draw_monthly,
    draw_quality,
    draw_retention,
    draw_revenue,
    draw_stickiness,
    draw_survival,
)

DAYS_SHOWN = 180
Draw = Callable[[Axes], None]


def figures(warehouse: Warehouse) -> list[tuple[str, Draw]]:
    """Read the marts; return titles, each with what draws the plot. A mart without rows is left out."""
    plots: list[tuple[str, str, Callable[[Axes, Rows], None]]] = [
        ("Daily active users", _latest("marts.daily_actives", "date_day", DAYS_SHOWN), draw_daily),
        (
            "Monthly active users",
            _latest("marts.monthly_actives", "activity_month", MONTHS_SHOWN),
            draw_monthly,
        ),
        (
            "Stickiness: daily / 30-day actives",
            _latest("marts.stickiness", "date_day", DAYS_SHOWN),
            draw_stickiness,
        ),
        ("Retention: active again, months after the first", RETENTION, draw_retention),
        ("Streaks: how many users get to a length", SURVIVAL, draw_survival),
        ("Points: what is owed", _latest("marts.points_liability", "date_day", DAYS_SHOWN), draw_liability),
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
