"""Measures an account of ten years: its events, and what reads of its oldest dates cost."""

from datetime import timedelta

from bench.counting.desk import Desk, PathCosts
from bench.units.engagement import DAY, USER_ID, apply_events, cost_of_request
from tests.support.ten_years import TenYears


def years_paths(desk: Desk) -> PathCosts:
    """Yield events of the next date, why a date counted, and an event that comes nine years late."""
    user, today = USER_ID.format(0), desk.now.date()
    account = TenYears(user, today - DAY)
    for table, items in account.items().items():
        desk.tables.put(table, items)
    desk.start_path()
    apply_events(desk, user, 1)
    yield "years.next.1", desk.take_costs()
    desk.tick(timedelta(minutes=30))
    for name, days in (("recent", 30), ("old", 9 * 365)):
        path = f"/v1/users/{user}/streak/explain?date={today - days * DAY}"
        yield f"years.explain.{name}", cost_of_request(desk, user, path)
    missed = next(day for day in sorted(account.covered) if day > today - 9 * 365 * DAY)
    desk.start_path()
    apply_events(desk, user, 1, days=(missed - today).days)
    yield "years.backfill.1", desk.take_costs()
