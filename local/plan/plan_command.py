"""`streakline plan`: its options, and what it prints."""

import functools
import json
from dataclasses import fields, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.command import FILE, Function, Reader, command, find_stack
from local.command import option as click_option
from local.plan.traffic import Traffic, option

if TYPE_CHECKING:
    from local.stack import Stack

REGION = "us-east-1"
HIDDEN = "****"  # what CloudFormation says of a parameter with NoEcho, be it set or empty
NAMED = "yours"  # the output (infra/app/network.yaml) of a cache or database that the stack has not created
# Parameters that name a service of your own -> the services whose prices the stack then does not cost.
OWN_SERVICES = {
    "RedisUrl": ("valkey",),
    "IdentityUrl": ("aurora", "rdsdata", "proxy"),
    "OwnVpc": ("endpoints",),
    "OwnWarehouse": ("redshift",),
}


def number(text: str) -> float:
    """Read a figure of a plan, such as 20_000 or 20,000; raises ValueError."""
    try:
        value = float(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise ValueError("no number") from None
    if not isfinite(value) or value < 0:
        raise ValueError("must be a number from 0")
    return value


def traffic_options(function: Function) -> Function:
    """Give a command an option for each figure of Traffic, and the parameter `traffic`."""
    names = [field.name for field in fields(Traffic)]

    @functools.wraps(function)
    def with_traffic(**values: Any) -> None:
        function(traffic=Traffic(**{name: values.pop(name) for name in names}), **values)

    for field in reversed(fields(Traffic)):
        is_needed = field.name == "daily_actives"
        add = click_option(
            option(field.name),
            type=Reader("n", number),
            help=field.metadata["about"],
            # A default of None would count as given.
            **(
                {"required": True}
                if is_needed
                else {"default": field.default, "show_default": f"{field.default:g}"}
            ),
        )
        with_traffic = add(with_traffic)
    return with_traffic


def parameters_of(stack: "Stack") -> dict[str, str]:
    """Return a stack's parameters. A hidden one is NAMED if an output says that it names something."""
    visible = {name: value for name, value in stack.parameters.items() if value != HIDDEN}
    outputs = {"RedisUrl": "Redis", "IdentityUrl": "IdentityDatabase"}
    return visible | {name: NAMED for name, output in outputs.items() if stack.outputs.get(output) == NAMED}


@command("plan --daily-actives 20_000", "plan --daily-actives 1_000_000 --environment large")
@traffic_options
@click_option("--environment", default="small", help="small, standard or large (samconfig.toml)")
@click_option("--prices", type=FILE, help="a price list of your own", show_default="the dated one")
def plan(
    *,
    stack_name: str | None,
    region: str | None,
    traffic: Traffic,
    environment: str,
    prices: Path | None,
    as_json: bool,
) -> None:
    """Say what an environment costs for a traffic, and which limit ends first.

    With --stack-name the plan is for that stack's parameters. --region says whose prices hold.
    """
    from adapters.settings.choices import settings_of
    from local.plan.bill import make_plan
    from local.plan.measured_units import load_units
    from local.plan.price_list import prices_of
    from local.plan.report import as_json as json_of
    from local.plan.report import table

    price_list, units = prices_of(region or REGION, prices), load_units()
    parameters = parameters_of(find_stack(stack_name, region)) if stack_name else {}
    size = units.size(parameters.get("Size", "small") if parameters else environment)
    unpaid = {
        service for name, services in OWN_SERVICES.items() if parameters.get(name) for service in services
    }
    idle = {name: count for name, count in size.idle.items() if name.partition(".")[0] not in unpaid}
    hot_days = float(settings_of(parameters.get("Settings", "")).get("EventHotDays", 0))
    cost_plan = make_plan(traffic, units, replace(size, idle=idle), price_list, hot_days)
    print(json.dumps(json_of(cost_plan), indent=2) if as_json else table(cost_plan))
