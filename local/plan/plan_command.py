"""`streakline plan`: its options, and what it prints."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from math import isfinite
from pathlib import Path

from local.plan.traffic import Traffic, option

REGION = "us-east-1"
# Parameters that name what is yours, and the prices that the stack then does not pay.
YOURS = {
    "RedisUrl": ("valkey",),
    "IdentityUrl": ("aurora", "rdsdata", "proxy"),
    "OwnVpc": ("endpoints",),
    "OwnWarehouse": ("redshift",),
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
        is_needed = each.name == "daily_actives"
        shown = "" if is_needed else f" (default: {each.default:g})"
        parser.add_argument(
            option(each.name),
            type=number(each.name),
            required=is_needed,
            default=None if is_needed else each.default,
            metavar="N",
            help=each.metadata["about"] + shown,
        )
    parser.add_argument("--environment", default="small", help="small, standard or large (samconfig.toml)")
    parser.add_argument("--prices", type=Path, metavar="FILE", help="a price list of your own")
    parser.add_argument("--json", action="store_true", help="the whole plan as JSON")


def run(arguments: argparse.Namespace, parameters: Mapping[str, str] | None = None) -> None:
    """Print a plan. parameters: those of a stack on AWS, in place of an environment's.

    arguments.region: whose prices (local/plan/prices). Raises ValueError for what cannot be planned; the text
    names the option.
    """
    from adapters.settings.choices import settings_of
    from local.plan.bill import make_plan
    from local.plan.measured_units import load_units
    from local.plan.price_list import prices_of
    from local.plan.report import as_json, table

    traffic = Traffic(**{each.name: getattr(arguments, each.name) for each in fields(Traffic)})
    prices, units, given = (
        prices_of(arguments.region or REGION, arguments.prices),
        load_units(),
        parameters or {},
    )
    size = units.size(given.get("Size", "small") if given else arguments.environment)
    yours = {service for name, services in YOURS.items() if given.get(name) for service in services}
    size = replace(
        size, idle={name: n for name, n in size.idle.items() if name.partition(".")[0] not in yours}
    )
    hot_days = float(settings_of(given.get("Settings", "")).get("EventHotDays", 0))
    plan = make_plan(traffic, units, size, prices, hot_days)
    print(json.dumps(as_json(plan), indent=2) if arguments.json else table(plan))
