"""`streakline plan`: its options, and what it prints."""

import functools
import json
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.command import FILE, FILE_OUT, Function, Reader, command, find_stack
from local.command import option as click_option
from local.plan.traffic import Traffic, option

if TYPE_CHECKING:
    from local.stack import Stack

REGION = "us-east-1"
SHOWN = {"users": "four times the daily actives"}
HELP = {
    "daily_actives": "users who do something in a day",
    "users": "all users with an account",
    "events_per_user": "events of an active user in a day",
    "events_per_batch": "events in one request, 1 to 100",
    "new_users": "share of the daily actives who open an account that day",
    "reads_per_user": "profile reads of an active user in a day",
    "boards_per_user": "top lists and ranks that an active user looks at in a day",
    "redemptions_per_user": "redemptions of an active user in a day",
    "holds_per_user": "points held and captured by an active user in a day",
    "expiries_per_account": "how often points of an account expire in a day",
    "clawbacks": "share of the events that are reversed later",
    "lead_events": "webhooks a day",
    "leads": "leads whose features are refreshed each morning",
    "lead_reads": "reads of leads' features, memory and events a day",
    "questions": "questions a day",
    "answers_per_question": "answers to a question",
    "phones": "phones that are told of each question",
    "webhook_endpoints": "endpoints of outgoing webhooks, each told of every change",
    "retention_days": "days that the system has run, which decide what is stored",
    "peak": "the busiest second of a day against its mean",
}


HIDDEN = "****"  # what CloudFormation says of a parameter with NoEcho, be it set or empty
YOURS = "yours"  # what infra/app/network.yaml says of a cache or database that the stack has not created


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
    names = [each.name for each in fields(Traffic)]

    @functools.wraps(function)
    def with_traffic(**given: Any) -> None:
        function(traffic=Traffic(**{name: given.pop(name) for name in names}), **given)

    for each in reversed(fields(Traffic)):
        is_needed = each.name == "daily_actives"
        add = click_option(
            option(each.name),
            type=Reader("n", number),
            required=is_needed,
            default=None if is_needed else each.default,
            help=HELP[each.name],
            show_default=SHOWN.get(each.name, False if is_needed else f"{each.default:g}"),
        )
        with_traffic = add(with_traffic)
    return with_traffic


def parameters_of(stack: "Stack") -> dict[str, str]:
    """Return a stack's parameters. Of those that are hidden an output says whether they name something."""
    known = {name: value for name, value in stack.parameters.items() if value != HIDDEN}
    outputs = {"RedisUrl": "Redis", "IdentityUrl": "IdentityDatabase"}
    return known | {name: YOURS for name, output in outputs.items() if stack.outputs.get(output) == YOURS}


@command("plan --daily-actives 20_000", "plan --daily-actives 1_000_000 --environment large --html plan.html")
@traffic_options
@click_option("--environment", default="small", help="an environment of samconfig.toml")
@click_option("--prices", type=FILE, help="a price list of your own", show_default="the dated one")
@click_option("--samconfig", type=FILE, help="environments of your own", show_default="samconfig.toml")
@click_option("--html", type=FILE_OUT, help="write a picture from 1,000 to 100 million daily actives")
def plan(
    *,
    stack_name: str | None,
    region: str | None,
    traffic: Traffic,
    environment: str,
    prices: Path | None,
    samconfig: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Say what an environment costs for a traffic, and which limit ends first.

    With --stack-name the plan is for that stack's parameters. --region says whose prices hold.
    """
    from local.plan.bill import make_plan
    from local.plan.environments import SAMCONFIG, deployed_with, deployment
    from local.plan.measured_units import load_units
    from local.plan.price_list import prices_of
    from local.plan.report import as_json as json_of
    from local.plan.report import table

    price_list = prices_of(region or REGION, prices)
    if stack_name:
        deployed = deployed_with(stack_name, parameters_of(find_stack(stack_name, region)))
    else:
        deployed = deployment(environment, samconfig or SAMCONFIG)
    units = load_units()
    made = make_plan(traffic, deployed, units, price_list)
    print(json.dumps(json_of(made, units), indent=2) if as_json else table(made, units))
    if html:
        from local.plan.report import picture

        html.write_text(picture(traffic, deployed, units, price_list), encoding="utf-8")
        if not as_json:
            print(f"\n{html}")
