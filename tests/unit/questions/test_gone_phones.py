"""Phones that are gone leave the lake when docs/retention.md says it."""

from analytics.questions.gone_phones import GONE_PHONES_STAY
from tests.infra.test_retention import ROWS
from tests.support.declared import properties


def test_phones_that_are_gone_stay_for_so_long() -> None:
    (row,) = [row for row in ROWS if row.holds == "push tokens, for restores"]
    days = GONE_PHONES_STAY.days
    assert row.gone.startswith(f"{days} to {2 * days} days")
    assert properties("ForgetFunction")["Handler"] == "analytics.steps.forget_function.handler"
