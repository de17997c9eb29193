"""What is asked at a deployment is little, and a size stands for the rest."""

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.leads.feature_store import shard_of
from infra.intrinsics import Refusal
from infra.stacks import resolve_stacks
from tests.support.effort import effort
from tests.support.template import ROOT, template

QUESTIONS_MAX = 29  # five of them are of a second region alone, two leave parts out
SIZES = template()["Mappings"]["Sizes"]
NAMES = ("small", "standard", "large")
ENDS = ["small", "large", "standard"][: effort(2, soak=3)]
SHARDS = ("LeaderboardShards", "FeatureShards", "StatsShards")
SWITCH = ("true", "false")
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:mine-a1b2c3"
# What each row may say.
ALLOWED: dict[str, Any] = {
    "CreateCache": SWITCH,
    "CreateStreamDoor": SWITCH,
    "IdentityReplica": SWITCH,
    "IdentityAccess": ("data-api", "driver", "proxy"),
    "Monitoring": ("basic", "full"),
    "EndpointZones": (1, 2),
    "WarehouseBaseCapacity": (4, 8, 16, 24, 32, 64, 128),
    **dict.fromkeys(SHARDS, range(1, 65)),
    "ApiReservedConcurrency": range(10_001),
    "IdentityMinCapacity": [each / 2 for each in range(513)],
    "IdentityMaxCapacity": [each / 2 for each in range(2, 513)],
    "CurateConcurrency": range(1, 51),
    "WarehouseDailyRpuHours": range(1, 100_000),
}


def test_few_questions_are_asked() -> None:
    assert len(template()["Parameters"]) <= QUESTIONS_MAX


def test_no_question_needs_an_answer() -> None:
    assert all("Default" in each for each in template()["Parameters"].values())


def test_an_environment_is_a_size() -> None:
    sizes = {"standard": {"Size": "standard"}, "large": {"Size": "large"}}
    tables = tomllib.loads((ROOT / "samconfig.toml").read_text())
    overrides = {
        name: dict(each.split("=") for each in table["deploy"]["parameters"].get("parameter_overrides", ()))
        for name, table in tables.items()
        if isinstance(table, dict) and "deploy" in table
    }
    assert overrides == {"default": {"Size": "small"}, **sizes}, (
        "else `make deploy` keeps a stack's former size"
    )
    assert template()["Parameters"]["Size"]["Default"] == "small"


@pytest.mark.parametrize("row", SIZES)
def test_each_size_has_a_value_that_is_allowed(row: str) -> None:
    assert SIZES[row].keys() == {*NAMES} == {*template()["Parameters"]["Size"]["AllowedValues"]}
    allowed = {str(each).removesuffix(".0") for each in ALLOWED[row]}
    assert {*SIZES[row].values()} <= allowed, SIZES[row]


def test_every_row_is_used_and_by_the_size() -> None:
    found = re.findall(r'"Fn::FindInMap": \["Sizes", "(\w+)", \{"Ref": "Size"\}\]', json.dumps(template()))
    assert {*found} == {*SIZES} == {*ALLOWED}


def refused(**parameters: str) -> str:
    try:
        resolve_stacks(parameters)
    except Refusal as refusal:
        return str(refusal)
    return ""


def held(**parameters: str) -> dict[str, bool]:
    return dict(resolve_stacks(parameters)["/"].conditions)


@pytest.mark.parametrize("size", NAMES)
def test_a_deployment_has_what_its_size_says(size: str) -> None:
    made = resolve_stacks({"Size": size})
    assert made["/"].conditions["HasCache"] == (SIZES["CreateCache"][size] == "true")
    assert made["/"].conditions["HasStreamDoor"] == (SIZES["CreateStreamDoor"][size] == "true")
    assert made["/"].conditions["HasDriver"] == (SIZES["IdentityAccess"][size] != "data-api")
    assert made["/Identity"].parameters["Access"] == SIZES["IdentityAccess"][size]
    assert str(made["/Identity"].parameters["MinCapacity"]) == SIZES["IdentityMinCapacity"][size]


def test_a_laptop_has_both_doors() -> None:
    assert held(**{"AWS::AccountId": "000000000000"})["HasStreamDoor"]


@pytest.mark.parametrize("size", NAMES)
def test_a_proxy_has_a_cluster_that_does_not_sleep(size: str) -> None:
    """It keeps connections open."""
    assert SIZES["IdentityAccess"][size] != "proxy" or SIZES["IdentityMinCapacity"][size] != "0"


# ---- Rules cannot read the table, so they name sizes


@pytest.mark.parametrize("size", ENDS)
def test_your_own_cache_needs_its_vpc_if_functions_are_in_ours(size: str) -> None:
    said = refused(Size=size, RedisUrl="redis://cache.example")
    assert ("your RedisUrl" in said) == (SIZES["IdentityAccess"][size] != "data-api")


@pytest.mark.parametrize("size", ENDS)
def test_your_own_database_needs_its_vpc_if_functions_are_in_ours(size: str) -> None:
    said = refused(Size=size, IdentityUrl=SECRET)
    assert ("your IdentityUrl" in said) == (SIZES["CreateCache"][size] == "true")


# ---- what you bring yourself: several values that only together mean something are one parameter

VPC = "vpc-1/sg-1/subnet-1,subnet-2"
WORKGROUP = "arn:aws:redshift-serverless:eu-west-1:123456789012:workgroup/mine"
COPY_ROLE = "arn:aws:iam::123456789012:role/copy"


@pytest.mark.parametrize("size", ENDS)
def test_a_cache_or_a_database_of_yours_takes_the_place_of_ours(size: str) -> None:
    yours = {"RedisUrl": "redis://cache.example", "IdentityUrl": SECRET}
    found = held(Size=size, OwnVpc=VPC, **yours)
    assert not found["HasCache"]
    assert not found["HasIdentity"]
    assert found["LeadsInVpc"]


def urls(**parameters: str) -> tuple[str, str]:
    """Where the leads' consumer finds cache and database."""
    root = resolve_stacks(parameters)["/"]
    variables = root.resources["ErasureFunction"]["Properties"]["Environment"]["Variables"]
    return variables["REDIS_URL"], variables["IDENTITY_URL"]


# A blank among settings is nothing, and CloudFormation takes blanks around the items of a list away.
MAY_BE_BLANK = {"Settings", "AllowedOrigins"}


@pytest.mark.parametrize("name", sorted(template()["Parameters"].keys() - MAY_BE_BLANK))
def test_a_blank_is_no_answer(name: str) -> None:
    """It would be taken for a value, and the functions would get it."""
    assert refused(**{name: " "}).startswith(f"{name} m")


def test_a_cache_or_a_database_with_a_password_is_named_by_its_secret() -> None:
    read = f"{{{{resolve:secretsmanager:{SECRET}}}}}"
    assert urls(RedisUrl=SECRET, IdentityUrl=SECRET, OwnVpc=VPC) == (read, read)
    assert urls(RedisUrl="rediss://cache.example:6379/0", OwnVpc=VPC)[0] == "rediss://cache.example:6379/0"


@pytest.mark.parametrize(
    "bad",
    [
        *(" ", "none", "cache.example:6379", "http://cache.example", "redis://", "redis:// ", "redis://a b"),
        *("redis://:secret@cache.example", "rediss://user:secret@cache.example:6379/0"),
        *("arn:aws:s3:::mine", f"{SECRET} ", f"{SECRET}:x"),
    ],
)
def test_a_cache_that_no_function_could_use_is_refused(bad: str) -> None:
    """Also a password, because the console shows parameters to whoever may see the stack."""
    assert "RedisUrl must be redis://HOST:PORT or rediss://HOST:PORT" in refused(RedisUrl=bad)


@pytest.mark.parametrize(
    "bad", [" ", "none", "postgresql://u:secret@db.example/leads", "arn:aws:iam::1:role/x"]
)
def test_a_database_that_is_no_secret_is_refused(bad: str) -> None:
    assert "IdentityUrl must be the ARN of a secret in Secrets Manager" in refused(IdentityUrl=bad)


def test_what_is_made_for_your_vpc_is_in_it() -> None:
    made = resolve_stacks({"Size": "standard", "OwnVpc": VPC})
    assert "/Network" not in made
    for nested in ("/Cache", "/Identity"):
        given_to = made[nested].parameters
        assert given_to["VpcId"] == "vpc-1"
        assert given_to["SubnetIds"] == ["subnet-1", "subnet-2"]
        assert given_to["ClientSecurityGroupId"] == "sg-1"
    placed = made["/"].resources["UsersApiFunction"]["Properties"]["VpcConfig"]
    assert placed == {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}


@pytest.mark.parametrize(
    "bad",
    ["vpc-1", "vpc-1/sg-1", "vpc-1/sg-1/subnet-1", "vpc-1,sg-1,subnet-1,subnet-2", f"{VPC},", f"{VPC} "],
)
def test_a_vpc_that_is_not_whole_is_refused(bad: str) -> None:
    assert "two or more subnets" in refused(OwnVpc=bad)


def zones(path: str, region: str, **parameters: str) -> list[str]:
    """The zones of a network's subnets, as CloudFormation would find them in a region."""
    made = resolve_stacks({"AWS::Region": region, **parameters})[path].resources.values()
    subnets = [each["Properties"] for each in made if each["Type"] == "AWS::EC2::Subnet"]
    return [each["AvailabilityZone"].removeprefix(region) for each in subnets]


def test_a_region_with_two_zones_has_all_subnets_too() -> None:
    """Redshift wants three subnets in three zones, and in us-west-1 three in its two."""
    assert zones("/Warehouse", "eu-west-1") == ["a", "b", "c"]
    assert zones("/Warehouse", "us-west-1") == ["a", "c", "a"]
    assert zones("/Network", "us-west-1") == ["a", "c"]
    named = "us-west-1c,us-west-1a,us-west-1c"
    assert zones("/Warehouse", "us-west-1", AvailabilityZones=named) == ["c", "a", "c"]


@pytest.mark.parametrize("bad", ["a,b", "a,b,c,d", "a, b, c", ",,", " ", "a,b,"])
def test_zones_that_are_not_three_are_refused_at_once(bad: str) -> None:
    assert "AvailabilityZones must be three zones" in refused(AvailabilityZones=bad)


def test_there_may_be_no_warehouse() -> None:
    assert not held(OwnWarehouse="none")["HasAnyWarehouse"]
    assert held()["HasWarehouse"]


@pytest.mark.parametrize(
    ("secret", "action"), [("", "redshift-serverless:GetCredentials"), (SECRET, "secretsmanager")]
)
def test_a_warehouse_of_yours_is_asked_by_its_names(secret: str, action: str) -> None:
    url = f"redshift://mine/dev?secret_arn={secret}" if secret else "redshift://mine/dev"
    made = resolve_stacks({"OwnWarehouse": f"{url},{WORKGROUP},{COPY_ROLE}"})["/"]
    assert made.conditions["HasOwnWarehouse"]
    assert not made.conditions["HasWarehouse"]
    for function in ("Warehouse", "Reconcile"):
        variables = made.resources[f"{function}Function"]["Properties"]["Environment"]["Variables"]
        assert (variables["WAREHOUSE_URL"], variables.get("COPY_ROLE_ARN", COPY_ROLE)) == (url, COPY_ROLE)
        policies = made.resources[f"{function}FunctionRole"]["Properties"]["Policies"]
        allowed = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
        asks = [each["Resource"] for each in allowed if "redshift-data:ExecuteStatement" in each["Action"]]
        signs = [
            each["Resource"]
            for each in allowed
            if action in each["Action"][:40] or each["Resource"] == SECRET
        ]
        assert asks == [WORKGROUP]
        assert (secret or WORKGROUP) in signs


@pytest.mark.parametrize(
    "bad",
    [
        "redshift://mine/dev",
        f"redshift://mine/dev,{WORKGROUP}",
        f"redshift://mine/dev,{COPY_ROLE},{WORKGROUP}",
        "None",
    ],
)
def test_a_warehouse_that_is_not_whole_is_refused(bad: str) -> None:
    assert "WORKGROUP_ARN,COPY_ROLE_ARN" in refused(OwnWarehouse=bad)


def test_objects_are_copied_into_the_peer_s_two_buckets() -> None:
    two = {"Role": "active", "PeerRegion": "us-west-2"}
    made = resolve_stacks({**two, "PeerBuckets": "payloads,lake"})["/"].resources
    copied = {
        name: made[name]["Properties"]["ReplicationConfiguration"]["Rules"][0]["Destination"]["Bucket"]
        for name in ("PayloadBucket", "LakeBucket")
    }
    assert copied == {"PayloadBucket": "arn:aws:s3:::payloads", "LakeBucket": "arn:aws:s3:::lake"}
    policy = made["CopyingRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"][-1]
    assert policy["Resource"] == ["arn:aws:s3:::payloads/*", "arn:aws:s3:::lake/*"]
    assert "PayloadBucketName and LakeBucketName" in refused(**two, PeerBuckets="payloads")
    assert "Role is single" in refused(PeerBuckets="payloads,lake")


@pytest.mark.parametrize(
    ("own", "peer", "witness", "refusal"),
    [
        ("us-east-1", "us-west-2", "us-east-2", ""),
        ("eu-central-1", "eu-west-1", "eu-west-3", ""),
        ("us-east-1", "us-west-2", "eu-west-1", "not of one set"),
        ("eu-west-1", "us-west-2", "us-east-2", "not of one set"),
        ("us-east-1", "us-west-1", "us-east-2", "not of one set"),
        ("us-east-1", "us-west-2", "us-west-2", "a third region"),
    ],
)
def test_the_register_s_regions_are_of_one_set(own: str, peer: str, witness: str, refusal: str) -> None:
    """Else its table fails, late in the deployment."""
    said = refused(**{"AWS::Region": own}, Role="active", PeerRegion=peer, WitnessRegion=witness)
    assert refusal in said and bool(said) == bool(refusal)


def test_a_domain_comes_with_its_zone_and_its_certificate() -> None:
    certificate = "arn:aws:acm:us-east-1:123456789012:certificate/1"
    given_to = resolve_stacks({"OwnDomain": f"api.example.com,Z0123,{certificate}"})["/Domain"].parameters
    assert (given_to["DomainName"], given_to["HostedZoneId"]) == ("api.example.com", "Z0123")
    assert given_to["CertificateArn"] == certificate
    assert "certificate's ARN" in refused(OwnDomain="api.example.com,Z0123")


def test_the_page_signs_in_with_the_issuer_of_the_tokens() -> None:
    def variables(**parameters: str) -> Any:
        return resolve_stacks(parameters)["/"].resources["PageFunction"]["Properties"]["Environment"][
            "Variables"
        ]

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


def test_where_the_numbers_are_it_says_what_not_to_do_with_them() -> None:
    fragment = (ROOT / "infra/app/sizes.yaml").read_text()
    before, _, _ = fragment.partition("    LeaderboardShards: {")
    comment = before[before.rindex("}\n") :]
    assert "NEVER LOWER" in comment
    assert "shards" in template()["Parameters"]["Size"]["Description"]
    assert all(f"`{row}`" in (ROOT / "docs/runbook.md").read_text() for row in SHARDS)
