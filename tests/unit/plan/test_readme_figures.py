"""README's table of dollars is what `streakline plan` says."""

import re

import pytest

from local.plan.bill import make_plan
from local.plan.environments import deployment
from local.plan.measured_units import load_units
from local.plan.price_list import prices_of
from local.plan.traffic import Traffic
from tests.support.template import ROOT

# | `small` (default) | $16 | $50 | $22 | ...
ROW = re.compile(r"^\| `(\w+)`[^|]*\| \$(\d+) \| \$(\d+) \| \$(\d+) \|", re.MULTILINE)
TOLD = {name: tuple(map(int, dollars)) for name, *dollars in ROW.findall((ROOT / "README.md").read_text())}


@pytest.mark.parametrize("environment", ["small", "standard", "large"])
def test_the_readme_tells_what_an_environment_costs(environment: str) -> None:
    plan = make_plan(
        Traffic(daily_actives=10_000), deployment(environment), load_units(), prices_of("us-east-1")
    )
    costs = plan.ours.idle_dollars, plan.ours.dollars, plan.per_million_events(plan.ours)
    # A new column or feature moves them by cents, which is no reason to touch the README.
    assert TOLD[environment] == pytest.approx(costs, rel=0.01, abs=1)
