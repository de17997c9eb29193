"""The parameter Settings: what it says is what functions get, and what is wrong in it is said with its name."""

import json
from dataclasses import fields
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.settings import read_settings
from adapters.settings.choices import (
    BUCKET_SETTINGS,
    SETTINGS,
    VALUES_BYTES_MAX,
    SettingRefused,
    attributes_of,
    settings_of,
    settings_table,
)
from ingest.engagement.event_body import EVENTS_MAX
from ingest.engagement.user_services import SERVER_USERS, UsersApiSettings
from ingest.web.bodies import BODY_BYTES_MAX
from rules.leads.settings import exchange_rates
from tests.support.parts import modules_of_parts
from tests.support.template import ROOT

DEFAULTS = {name: each.default for name, each in SETTINGS.items()}
# Name -> values at both ends, values beyond them.
NUMBERS = {
    "RateLimitPerMinute": (("1", "999999999"), ("0",)),
    "CommandsPerMinute": (("1", "999999999"), ("0",)),
    "ReadsPerMinute": (("100", "999999999"), ("0", "99")),
    "ExportsPerDay": (("1", "999999999"), ("0",)),
    "CampaignGraceDays": (("1", "89"), ("0", "90", "7.5")),
    "SparkFromGb": (("0", "1000000"), ("1000001", "0.5", "-1")),
    "RawRetentionDays": (("0", "180", "36500"), ("1", "179", "36501")),
    "QuarantineRetentionDays": (("0", "30", "36500"), ("1", "29", "36501")),
    "CuratedRetentionDays": (("0", "36500"), ("1", "179", "36501")),
    "EventHotDays": (("0", "90", "36499"), ("1", "89", "36501")),
    "PayloadRetentionDays": (("0", "30", "36500"), ("1", "29", "36501")),
    **{name: values for module in modules_of_parts("choices") for name, values in module.NUMBERS.items()},
}
BOOST = '[{"since": "2026-06-01T00:00:00Z", "until": "2026-06-02T00:00:00Z", "factor": 2}]'
TEXTS = {
    "Currency": (
        ("EUR", "BRL", "USD acme=EUR shop.br=BRL"),
        (
            "eur",
            "EURO",
            "",
            "E1R",
            "EUR USD",
            "acme=EUR",
            "USD acme=eur",
            "USD acme=EUR acme=BRL",
            "JPY",
            "USD a=KWD",
        ),
    ),
    "PhoneRegions": (("", "US", "US acme=DE shop.br=BR"), ("usa", "acme=de", "US,DE", "=DE")),
    "ExchangeRates": (("", "EUR=1.08", "EUR=1.08 JPY=0.0067"), ("EUR", "EUR=0", "eur=1", "EUR=1 EUR=2")),
    "SignInOrigins": (
        ("", "https://login.example.com", "https://a.example https://b.example:8443"),
        ("login.example.com", "https://a.example,https://b.example", "https://a.example/path", "http://a"),
    ),
}
CASES = {**NUMBERS, **TEXTS}


def refused(text: str) -> str:
    with pytest.raises(SettingRefused) as told:
        settings_of(text)
    return str(told.value)


def test_nothing_said_is_all_defaults() -> None:
    assert settings_of("") == settings_of("  ") == DEFAULTS


def test_every_default_is_allowed() -> None:
    for each in SETTINGS.values():
        each.check(each.default)


def test_what_is_said_stands_in_for_the_default() -> None:
    text = " RateLimitPerMinute=600;Currency = EUR ; ExchangeRates=USD=0.92 GBP=1.17"
    found = settings_of(text)
    said = {"RateLimitPerMinute": "600", "Currency": "EUR", "ExchangeRates": "USD=0.92 GBP=1.17"}
    assert found == {**DEFAULTS, **said}
    assert exchange_rates(found["ExchangeRates"])["GBP"] == Decimal("1.17")


@pytest.mark.parametrize("name", SETTINGS)
def test_what_cloudformation_refused_is_refused_with_the_name(name: str) -> None:
    good, bad = CASES[name]
    for value in good:
        assert settings_of(f"{name}={value}")[name] == value
    for value in (*bad, *(("", "x", "-1", "1.5", "1e3", "٣", "1_0") if name in NUMBERS else ())):
        assert refused(f"{name}={value}").startswith(f"Settings: {name}"), value


def test_every_fault_is_told_at_once() -> None:
    told = refused("RateLimitPerMinute=0; Curency=EUR; PhoneRegions=usa; Currency=EUR; Currency=USD; 5")
    assert told == (
        "Settings: RateLimitPerMinute must be a whole number, 1 or more, unlike '0'; "
        "there is no setting Curency; did you mean Currency?; "
        "PhoneRegions: usa is neither a region, such as DE, nor organization=DE; "
        "Currency is given twice; '5' is no setting and its value, such as Currency=EUR"
    )


def test_what_sam_cuts_off_at_a_blank_is_not_lost_in_silence() -> None:
    """`--parameter-overrides Settings=RateLimitPerMinute=600; Currency=EUR`, without quotes around the text."""
    assert "that needs quotes" in refused("RateLimitPerMinute=600;")
    assert "that needs quotes" in refused("RateLimitPerMinute=600;;Currency=EUR")


@pytest.mark.parametrize(
    ("hot", "curated", "allowed"),
    [(0, 180, True), (90, 0, True), (90, 180, True), (179, 180, True), (180, 180, False), (3650, 365, False)],
)
def test_events_leave_only_while_the_lake_has_them(hot: int, curated: int, allowed: bool) -> None:
    text = f"EventHotDays={hot}; CuratedRetentionDays={curated}"
    if allowed:
        assert settings_of(text)["EventHotDays"] == str(hot)
    else:
        assert "EventHotDays must be less than CuratedRetentionDays" in refused(text)


@pytest.mark.parametrize("name", BUCKET_SETTINGS)
def test_a_rule_that_deletes_nothing_is_disabled_and_has_days_all_the_same(name: str) -> None:
    rule = name.removesuffix("Days") + "Rule"
    for text, status, days in (
        ("", "Disabled", "3650"),
        (f"{name}=0", "Disabled", "3650"),
        (f"{name}=000", "Disabled", "3650"),
        (f"{name}=180", "Enabled", "180"),
        (f"{name}=0200", "Enabled", "200"),
    ):
        found = attributes_of(settings_of(text))
        assert (found[rule], found[f"{rule}Days"]) == (status, days)


def test_a_parameter_of_the_template_is_no_setting() -> None:
    assert refused("Size=large") == "Settings: there is no setting Size; docs/settings.md has all"


def test_more_than_an_answer_holds_is_refused() -> None:
    regions = " ".join(f"organization{number}=DE" for number in range(500))
    assert f"{VALUES_BYTES_MAX} are allowed" in refused(f"PhoneRegions={regions}")


values = st.fixed_dictionaries(
    {},
    optional={name: st.sampled_from(good) for name, (good, _) in CASES.items()},
)


@given(values, st.randoms(use_true_random=False), st.sampled_from(["; ", ";", " ; "]))
def test_any_order_and_spacing_says_the_same(given: dict[str, str], order: object, between: str) -> None:
    pairs = [f"{name}={value}" for name, value in given.items()]
    order.shuffle(pairs)  # type: ignore[attr-defined]  # a random.Random
    assert settings_of(between.join(pairs)) == {**DEFAULTS, **given}


@settings(max_examples=30)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        found = settings_of(text)
    except SettingRefused as refusal:
        assert str(refusal).startswith("Settings: ")
    else:
        assert found.keys() == SETTINGS.keys()
        assert len(json.dumps(found)) <= VALUES_BYTES_MAX


def test_what_is_allowed_is_read_by_functions() -> None:
    environ = {each.name.upper(): "x" for each in fields(UsersApiSettings)}
    environ |= {"LEADERBOARD_SHARDS": "4", "EVENT_HOT_DAYS": "0"}
    named = {"COMMANDS_PER_MINUTE": "CommandsPerMinute", "READS_PER_MINUTE": "ReadsPerMinute"}
    for value in NUMBERS["CommandsPerMinute"][0]:
        found = settings_of(f"CommandsPerMinute={value}")
        config = read_settings(
            UsersApiSettings, {**environ, **{key: found[name] for key, name in named.items()}}
        )
        assert config.commands_per_minute == int(value)


def test_the_documented_table_is_the_declaration() -> None:
    assert settings_table() in (ROOT / "docs" / "settings.md").read_text()


def test_the_guide_to_backends_has_the_limits_as_they_are_by_default() -> None:
    text = (ROOT / "docs/guides/python-backend.md").read_text()
    commands = int(DEFAULTS["CommandsPerMinute"])
    assert f"| {int(DEFAULTS['RateLimitPerMinute']):,} a minute; none for producers and admins |" in text
    assert f"| {commands} a minute for a caller; " in text
    assert f"{commands} for each user, and {commands * SERVER_USERS:,} in all |" in text
    assert f"| {DEFAULTS['ReadsPerMinute']} a minute for a caller; none for admins |" in text
    assert f"| {EVENTS_MAX}; {BODY_BYTES_MAX // 1_000_000} MB |" in text
