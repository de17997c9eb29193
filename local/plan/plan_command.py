"""`streakline plan`: its options, and what it prints."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from math import isfinite
from pathlib import Path
from typing import Any

from local.plan.traffic import Traffic, option

REGION = "us-east-1"
HELP = {
    "daily_actives": "users who do something in a day",
    "users": "all users with an account (default: four times the daily actives)",
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


def number(name: str) -> Callable[[str], float]:
    """Return a reader of an option's number; argparse names the option in its error."""

    def read(text: str) -> float:
        try:
            value = float(text.replace("_", "").replace(",", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
        if not isfinite(value) or value < 0:
            raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0")
        return value

    read.__name__ = name
    return read


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser: one for each figure of Traffic, and where the plan is for."""
    for each in fields(Traffic):
        assert each.default is not MISSING
        default = each.default
        is_needed = each.name == "daily_actives"
        shown = "" if is_needed or "default" in HELP[each.name] else f" (default: {default:g})"
        parser.add_argument(
            option(each.name),
            type=number(each.name),
            required=is_needed,
            default=None if is_needed else default,
            metavar="N",
            help=HELP[each.name] + shown,
        )
    parser.add_argument("--environment", default="small", help="an environment of samconfig.toml")
    parser.add_argument("--prices", type=Path, metavar="FILE", help="a price list of your own")
    parser.add_argument("--samconfig", type=Path, metavar="FILE", help="in place of samconfig.toml")
    parser.add_argument("--json", action="store_true", help="the whole plan as JSON")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="a picture from 1,000 to 100 million daily actives"
    )


def run(arguments: argparse.Namespace, parameters: Mapping[str, str] | None = None) -> None:
    """Print a plan. parameters: those of a stack on AWS, in place of an environment's.

    arguments.region: whose prices (local/plan/prices). Raises ValueError for what cannot be planned; the text
    names the option.
    """
    from local.plan.bill import make_plan
    from local.plan.environments import SAMCONFIG, deployed_with, deployment
    from local.plan.measured_units import load_units
    from local.plan.price_list import prices_of
    from local.plan.report import as_json, table

    given: dict[str, Any] = {each.name: getattr(arguments, each.name) for each in fields(Traffic)}
    traffic = Traffic(**given)
    prices = prices_of(arguments.region or REGION, arguments.prices)
    if parameters is None:
        deployed = deployment(arguments.environment, arguments.samconfig or SAMCONFIG)
    else:
        deployed = deployed_with(arguments.stack_name, parameters)
    units = load_units()
    plan = make_plan(traffic, deployed, units, prices)
    print(json.dumps(as_json(plan, units), indent=2) if arguments.json else table(plan, units))
    if arguments.html:
        from local.plan.report import picture

        arguments.html.write_text(picture(traffic, deployed, units, prices), encoding="utf-8")
        if not arguments.json:
            print(f"\n{arguments.html}")
