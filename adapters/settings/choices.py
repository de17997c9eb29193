"""What a deployer chooses in the template's parameter Settings.

In this order: how the parameter is read; the list of all settings, with all that docs/settings.md says of
each.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rules.parts import PartSettings, said
from rules.privacy.tombstones import SafeToLog

PARTS: list[PartSettings] = list(said("settings"))
# CloudFormation takes an answer of 4,096 bytes, and Lambda environment variables of as many.
VALUES_BYTES_MAX = 3000
HOT_DAYS, CURATED_DAYS = "EventHotDays", "CuratedRetentionDays"
# Settings that become a lifecycle rule of a bucket: after so many days S3 deletes an object.
BUCKET_SETTINGS = ("RawRetentionDays", "QuarantineRetentionDays", CURATED_DAYS, "PayloadRetentionDays")
DAYS_MAX = 36_500
NO_RULE_DAYS = 3650  # S3 takes no rule without days, so a disabled rule has these
NOTHING_THERE = (
    "there is nothing before or after a semicolon: `sam` cuts off a text with blanks that needs quotes"
)
ORIGINS_ALLOWED = "origins with blanks between them, such as https://login.example.com"
ORIGINS = re.compile(r"(?:https://[A-Za-z0-9.-]+(?::\d{1,5})?(?: +|$))*", re.ASCII)


class SettingRefused(SafeToLog, ValueError):
    """The parameter cannot be read. The message has a sentence for each fault, with the setting's name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, as docs/settings.md shows it."""

    name: str
    default: str
    allowed: str  # its values in words
    meaning: str  # what it decides, in words
    check: Callable[[str], object]  # raises ValueError, with the setting's name, for a value that is refused


def settings_of(text: str) -> dict[str, str]:
    """Return the value of each setting by its name, given or default; raises SettingRefused.

    text: the parameter, such as `Currency=EUR; RateLimitPerMinute=600`.
    """
    given: dict[str, str] = {}
    faults: list[str] = []
    for part in text.split(";") if text.strip() else ():
        name, equals, value = (each.strip() for each in part.partition("="))
        if not part.strip():
            faults.append(NOTHING_THERE)
        elif not equals:
            faults.append(f"{part.strip()!r} is no setting and its value, such as Currency=EUR")
        elif name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f"did you mean {near[0]}?" if near else "docs/settings.md has all"
            faults.append(f"there is no setting {name}; {hint}")
        elif name in given:
            faults.append(f"{name} is given twice")
        else:
            given[name] = value
            try:
                SETTINGS[name].check(value)
            except ValueError as error:
                faults.append(str(error))
    values = {name: given.get(name, each.default) for name, each in SETTINGS.items()}
    if not faults and 0 < int(values[CURATED_DAYS]) <= int(values[HOT_DAYS]):
        faults.append(
            f"{HOT_DAYS} must be less than {CURATED_DAYS}: events leave DynamoDB only while the lake has them"
        )
    size = len(json.dumps(values).encode())
    if size > VALUES_BYTES_MAX:
        faults.append(f"all values together have {size} bytes, and {VALUES_BYTES_MAX} are allowed")
    if faults:
        raise SettingRefused(f"Settings: {'; '.join(faults)}")
    return values


def attributes_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what the template takes: all settings, and some once more in the form of a bucket or a table."""
    days = {name.removesuffix("Days"): int(settings[name]) for name in BUCKET_SETTINGS}
    return {
        **settings,
        **{f"{name}Rule": "Enabled" if each else "Disabled" for name, each in days.items()},
        **{f"{name}RuleDays": str(each or NO_RULE_DAYS) for name, each in days.items()},
        "EventsExpire": "false" if int(settings[HOT_DAYS]) else "true",
    }


def settings_table() -> str:
    """Return a Markdown table of all settings."""
    rows = (
        f"| `{setting.name}` | {f'`{setting.default}`' if setting.default else 'nothing'} "
        f"| {setting.allowed} | {setting.meaning} |\n"
        for setting in SETTINGS.values()
    )
    return "| setting | default | values | what it is |\n|---|---|---|---|\n" + "".join(rows)


def _number(name: str, default: int, meaning: str, least: int, most: int | None = None) -> Setting:
    allowed = f"{least} or more" if most is None else f"{least} to {most}"

    def check(value: str) -> None:
        number = int(value) if re.fullmatch(r"\d{1,9}", value, re.ASCII) else -1
        if number < least or (most is not None and number > most):
            raise ValueError(f"{name} must be a whole number, {allowed}, unlike {value!r}")

    return Setting(name, str(default), allowed, meaning, check)


def _days(name: str, meaning: str, least: int) -> Setting:
    allowed = f"0, or {least} to {DAYS_MAX}"

    def check(value: str) -> None:
        number = int(value) if re.fullmatch(r"\d{1,5}", value, re.ASCII) else -1
        if number and not least <= number <= DAYS_MAX:
            raise ValueError(f"{name} must be a whole number of days, {allowed}, unlike {value!r}")

    return Setting(name, "0", allowed, meaning, check)


def _origins(value: str) -> None:
    if not ORIGINS.fullmatch(value):
        raise ValueError(f"SignInOrigins must be {ORIGINS_ALLOWED}, unlike {value!r}")


_ALL = (
    _number(
        "RateLimitPerMinute",
        1200,
        "events that one user may send in a minute, and answers that one agent may relay; admins and "
        "producers are not limited",
        1,
    ),
    _number(
        "CommandsPerMinute",
        60,
        "commands (redemptions, freezes, pauses, zones), questions and subscriptions that one caller "
        "may send in a minute, of each kind; a shop's server may send as many for each user, and a "
        "hundred times as many in all",
        1,
    ),
    _number("ReadsPerMinute", 600, "reads that one caller may do in a minute; admins are not limited", 100),
    _number(
        "ExportsPerDay",
        10,
        "exports of persons that one caller may ask for in a day; admins are not limited",
        1,
    ),
    *(_number(*each) for part in PARTS for each in part.numbers),
    *(Setting(*each) for part in PARTS for each in part.texts),
    _number(
        "SparkFromGb",
        20,
        "if a night's raw objects have more GB, zipped, the Glue job curates them first; 0: never",
        0,
        1_000_000,
    ),
    Setting(
        "SignInOrigins",
        "",
        ORIGINS_ALLOWED,
        "further origins that the page may call to sign people in with your own issuer (`SignInClientId`)",
        _origins,
    ),
    _days(
        "RawRetentionDays",
        "how long the lake keeps raw objects; 0: for ever. A rebuild of older days uses the curated rows and "
        "refused lines, and the report says so",
        180,
    ),
    _days("QuarantineRetentionDays", "how long the lake keeps refused lines; 0: for ever", 30),
    _days(
        CURATED_DAYS,
        "how long the lake keeps curated files that no nightly run needs (events, questions, stats, and "
        "all of leads); 0: for ever. Days, ledger, profiles and responses stay, and the warehouse keeps its "
        "rows",
        180,
    ),
    _days(
        HOT_DAYS,
        "after how many days an event is deleted from DynamoDB, at the price of a write, if the lake has the "
        f"same values; fewer than `{CURATED_DAYS}`. 0: events expire after 90 days, which costs nothing, "
        "even if the lake lacks them",
        90,
    ),
    _days(
        "PayloadRetentionDays",
        "how long the webhooks themselves are kept, in the payload bucket and in DynamoDB; 0: for ever",
        30,
    ),
    *(_days(*each) for part in PARTS for each in part.days),
)
SETTINGS = {each.name: each for each in _ALL}

ModelSettings = tuple[tuple[str, int], ...]  # name of a placeholder, value


def model_settings(values: Mapping[str, str]) -> ModelSettings:
    """Return the settings that SELECTs of models name in braces, such as `{campaign_grace_days}`.

    values: of all settings, by name.
    """
    names = [name for part in PARTS for name in part.in_models]
    return tuple((re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), int(values[name])) for name in names)


MODEL_SETTINGS = model_settings({name: each.default for name, each in SETTINGS.items()})
