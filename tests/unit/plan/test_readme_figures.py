"""README's table of dollars is what `streakline plan` says."""

import re

import pytest

from local.plan.bill import make_plan
from local.plan.measured_units import load_units
from local.plan.price_list import prices_of
from local.plan.traffic import Traffic
from tests.support.template import ROOT

# | `small` (default) | $16 | $50 | $22 | ...
ROW = re.compile(r"^\| `(\w+)`[^|]*\| \$(\d+) \| \$(\d+) \| \$(\d+) \|", re.MULTILINE)
TOLD = {name: tuple(map(int, dollars)) for name, *dollars in ROW.findall((ROOT / "README.md").read_text())}


@pytest.mark.parametrize("environment", ["small", "standard", "large"])
def test_the_readme_tells_what_an_environment_costs(environment: str) -> None:
    units = load_units()
    plan = make_plan(Traffic(daily_actives=10_000), units, units.size(environment), prices_of("us-east-1"))
    costs = plan.idle_dollars, plan.dollars, plan.per_million_events
    # A new column or feature moves them by cents, which is no reason to touch the README.
    assert TOLD[environment] == pytest.approx(costs, rel=0.01, abs=1)
