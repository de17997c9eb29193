"""What is asked at a deployment is little, and a size stands for the rest."""

import json
import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.leads.feature_store import shard_of
from adapters.questions.user_stats_store import leaderboard_partition
from infra.lint.parameter_sets import environments
from infra.lint.refusals import Refused
from infra.lint.resolved import resolved
from tests.support.template import ROOT, template

QUESTIONS_MAX = 45  # eight of them are of a second region alone
SIZES = template()["Mappings"]["Sizes"]
NAMES = ("small", "standard", "large")
CHOICES = ("CreateCache", "CreateStreamDoor", "IdentityAccess")  # rows that are parameters too
SHARDS = ("LeaderboardShards", "FeatureShards", "StatsShards")
SWITCH = ("true", "false")
# What CloudFormation took when each row was a parameter of its own.
ALLOWED: dict[str, Any] = {
    "CreateCache": SWITCH,
    "CreateStreamDoor": SWITCH,
    "IdentityReplica": SWITCH,
    "IdentityAccess": ("data-api", "driver", "proxy"),
    "Monitoring": ("basic", "full"),
    "EndpointZones": (1, 2),
    "WarehouseBaseCapacity": (4, 8, 16, 24, 32, 64, 128, 256, 512),
    **dict.fromkeys(SHARDS, range(1, 65)),
    "ApiReservedConcurrency": range(10_001),
    "IdentityMinCapacity": [each / 2 for each in range(513)],
    "IdentityMaxCapacity": [each / 2 for each in range(2, 513)],
    "CurateConcurrency": range(1, 51),
    "WarehouseMaxCapacity": range(4, 1025),
    "WarehouseDailyRpuHours": range(1, 100_000),
}


def test_few_questions_are_asked() -> None:
    assert len(template()["Parameters"]) <= QUESTIONS_MAX


def test_no_question_needs_an_answer() -> None:
    assert all("Default" in each for each in template()["Parameters"].values())


def test_an_environment_is_a_size() -> None:
    named = environments(ROOT / "samconfig.toml")
    sizes = {"standard": {"Size": "standard"}, "large": {"Size": "large"}}
    assert named == {"default": {}, **sizes}
    assert template()["Parameters"]["Size"]["Default"] == "small"


@pytest.mark.parametrize("row", SIZES)
def test_each_size_has_a_value_that_is_allowed(row: str) -> None:
    assert SIZES[row].keys() == {*NAMES} == {*template()["Parameters"]["Size"]["AllowedValues"]}
    allowed = {str(each).removesuffix(".0") for each in ALLOWED[row]}
    assert {*SIZES[row].values()} <= allowed, SIZES[row]


def test_every_row_is_used_and_by_the_size() -> None:
    found = re.findall(r'"Fn::FindInMap": \["Sizes", "(\w+)", \{"Ref": "Size"\}\]', json.dumps(template()))
    assert {*found} == {*SIZES} == {*ALLOWED}


def test_a_choice_is_left_to_the_size_unless_made() -> None:
    for name in CHOICES:
        shape = template()["Parameters"][name]
        assert shape["Default"] == "size"
        assert {*shape["AllowedValues"]} == {"size", *ALLOWED[name]}


def refused(**parameters: str) -> str:
    try:
        resolved(parameters)
    except Refused as refusal:
        return str(refusal)
    return ""


def held(**parameters: str) -> dict[str, bool]:
    return dict(resolved(parameters)["/"].conditions)


@pytest.mark.parametrize("size", NAMES)
def test_the_choices_of_a_size_are_those_made_by_hand(size: str) -> None:
    by_hand = {name: SIZES[name][size] for name in CHOICES}
    as_said, made = held(Size=size), held(Size=size, **by_hand)
    assert {name for name in made if made[name] != as_said[name]} == {"AccessAsSize"}
    assert made["HasCache"] == (SIZES["CreateCache"][size] == "true")
    assert made["HasStreamDoor"] == (SIZES["CreateStreamDoor"][size] == "true")
    assert made["HasDriver"] == (SIZES["IdentityAccess"][size] != "data-api")


def test_the_identity_cluster_gets_what_the_size_or_the_choice_says() -> None:
    def given_to(**parameters: str) -> Any:
        return resolved(parameters)["/Identity"].parameters

    assert given_to(Size="large")["Access"] == "proxy"
    assert given_to(Size="large")["MinCapacity"] == 2
    assert given_to(Size="large", IdentityAccess="driver")["Access"] == "driver"


# ---- Rules cannot read the table, so they name sizes


@pytest.mark.parametrize(("size", "access"), product(NAMES, ("size", "data-api", "driver", "proxy")))
def test_a_proxy_needs_a_cluster_that_does_not_sleep(size: str, access: str) -> None:
    real = SIZES["IdentityAccess"][size] if access == "size" else access
    impossible = real == "proxy" and SIZES["IdentityMinCapacity"][size] == "0"
    assert ("never sleeps" in refused(Size=size, IdentityAccess=access)) == impossible


@pytest.mark.parametrize(("size", "access"), product(NAMES, ("size", "data-api", "driver")))
def test_your_own_cache_needs_its_vpc_if_functions_are_in_ours(size: str, access: str) -> None:
    if access == "proxy" and size == "small":
        return
    real = SIZES["IdentityAccess"][size] if access == "size" else access
    said = refused(Size=size, IdentityAccess=access, RedisUrl="redis://cache.example")
    assert ("your RedisUrl" in said) == (real != "data-api")


@pytest.mark.parametrize(("size", "cache"), product(NAMES, ("size", *SWITCH)))
def test_your_own_database_needs_its_vpc_if_functions_are_in_ours(size: str, cache: str) -> None:
    real = SIZES["CreateCache"][size] if cache == "size" else cache
    said = refused(Size=size, CreateCache=cache, IdentityUrl="postgresql://db.example/leads")
    assert ("your IdentityUrl" in said) == (real == "true")


@pytest.mark.parametrize("size", NAMES)
def test_a_cache_or_a_database_of_yours_takes_the_place_of_ours(size: str) -> None:
    vpc = {"VpcId": "vpc-1", "SubnetIds": "subnet-1,subnet-2", "SecurityGroupId": "sg-1"}
    yours = {"RedisUrl": "redis://cache.example", "IdentityUrl": "postgresql://db.example/leads"}
    found = held(Size=size, **vpc, **yours)
    assert not found["HasCache"]
    assert not found["HasIdentity"]
    assert found["LeadsInVpc"]
    assert "Give one of the two" in refused(Size=size, CreateCache="true", RedisUrl="redis://cache.example")
    assert "Give one of the two" in refused(Size=size, IdentityAccess="data-api", **vpc, **yours)


def test_there_may_be_no_warehouse_and_one_of_yours_needs_its_names() -> None:
    found = held(WarehouseUrl="none")
    assert not found["HasAnyWarehouse"]
    assert held()["HasWarehouse"]
    assert "WarehouseUrl needs" in refused(WarehouseUrl="redshift://mine/dev")
    arns = {"WarehouseWorkgroupArn": "arn:aws:a", "WarehouseCopyRoleArn": "arn:aws:b"}
    own = held(WarehouseUrl="redshift://mine/dev", **arns)
    assert own["HasOwnWarehouse"]
    assert not own["HasWarehouse"]


def test_the_page_signs_in_with_the_issuer_of_the_tokens() -> None:
    def variables(**parameters: str) -> Any:
        return resolved(parameters)["/"].resources["PageFunction"]["Properties"]["Environment"]["Variables"]

    own = {"JwtIssuer": "https://id.example/", "JwtAudience": "api"}
    signed = variables(**own, SignInClientId="page")
    assert (signed["OIDC_AUTHORITY"], signed["OIDC_CLIENT_ID"]) == ("https://id.example/", "page")
    assert signed["OIDC_ORIGINS"] == {"Fn::GetAtt": ["CheckedSettings", "SignInOrigins"]}
    assert variables(**own)["OIDC_AUTHORITY"] == "", "people bring a token"
    assert "needs JwtIssuer" in refused(SignInClientId="page")


# ---- shards


def test_no_larger_size_has_fewer_shards() -> None:
    """Who grows loses sight of nothing."""
    for row in SHARDS:
        numbers = [int(SIZES[row][size]) for size in NAMES]
        assert numbers == sorted(numbers)


@given(st.text(min_size=1), st.integers(1, 64), st.integers(0, 63))
def test_a_greater_number_of_shards_finds_what_a_smaller_one_wrote(name: str, shards: int, more: int) -> None:
    """Readers ask every partition below the number, so partitions above it are the ones that are lost."""
    assert shard_of(name, shards) in {str(each) for each in range(shards + more)}
    boards = {"_leaderboard", *(f"_leaderboard#{each}" for each in range(1, shards + more))}
    assert leaderboard_partition(name, shards) in boards


def test_where_the_numbers_are_it_says_what_not_to_do_with_them() -> None:
    fragment = (ROOT / "infra/app/sizes.yaml").read_text()
    before, _, _ = fragment.partition("    LeaderboardShards: {")
    comment = before[before.rindex("}\n") :]
    assert "NEVER LOWER" in comment
    assert "shards" in template()["Parameters"]["Size"]["Description"]
    assert all(f"`{row}`" in (ROOT / "docs/runbook.md").read_text() for row in SHARDS)
