"""The laptop runs what AWS runs: no code of the product knows where it is, and no variable sends it another way."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from infra.stacks import resolve_stacks
from local.cloud import deployment
from local.cloud.deployment import ACCOUNT
from tests.support.template import ROOT

PRODUCT = ("rules", "adapters", "ingest", "processors", "analytics")
PLACES = re.compile(r"emulat|ministack|\bmoto\b|localhost|AWS_ENDPOINT|\bOnAws\b|\b0{12}\b", re.IGNORECASE)
# Variables whose value on the laptop is of a kind that it has in no size on AWS, and why that has to be.
BY_PLACE = {
    "WAREHOUSE_URL": "DuckDB takes Redshift's place: no Redshift runs on a laptop; tests/sql holds both to one answer",
    "COPY_ROLE_ARN": "DuckDB reads the lake itself",
    "PRIVATE_ENDPOINTS": "the laptop's webhooks go to loopback, which a function on AWS must never call",
}
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:leads-a1b2c3"
# What somebody deploys on AWS who has a cache, a database, an issuer and a warehouse already: the laptop is such a one.
OWN = (
    *("RedisUrl=redis://cache:6379", f"IdentityUrl={SECRET}"),
    *("JwtIssuer=https://login.example.com", "JwtAudience=app", "OwnVpc=vpc-1/sg-1/subnet-1,subnet-2"),
    (
        "OwnWarehouse=redshift://workgroup/database,arn:aws:redshift-serverless:us-east-1:1:workgroup/1,"
        "arn:aws:iam::123456789012:role/copy"
    ),
)
Variables = Mapping[str, Mapping[str, str]]


@cache
def variables(*parameters: str) -> Variables:
    """The variables of each function of a deployment."""
    root = resolve_stacks(dict(each.split("=", 1) for each in parameters))["/"]
    return {
        name: root.flat(each["Properties"].get("Environment", {}).get("Variables", {}))
        for name, each in root.resources.items()
        if each["Type"] == "AWS::Lambda::Function"
    }


def laptop() -> Variables:
    given = deployment._parameters("http://127.0.0.1:1", "redis://127.0.0.1:2", SECRET)
    return variables(*(f"{name}={value}" for name, value in given.items()), f"AWS::AccountId={ACCOUNT}")


def kind(value: object) -> str:
    """What decides a way in code: the scheme of a URL, a word, whether there is something; not the number or the name."""
    text = str(value)
    if found := re.match(r"(https?|[a-z-]+):(?=/)", text):
        return {"http": "https"}.get(found[1], found[1])
    if re.fullmatch(r"[a-z]+", text):
        return text
    return "number" if re.fullmatch(r"\d+", text) else "name" if text else "nothing"


def of_another_kind(here: Variables, there: list[Variables]) -> Iterator[str]:
    """Yield the variables of `here` whose kind they have in none of the others."""
    for function, own in here.items():
        for name, value in own.items():
            if kind(value) not in {kind(each[function].get(name, "")) for each in there if function in each}:
                yield name


def spoken(text: str) -> list[str]:
    return sorted({each.lower() for each in PLACES.findall(text)})


def test_no_module_of_the_product_knows_the_emulator() -> None:
    texts = {
        str(path.relative_to(ROOT)): path.read_text()
        for each in PRODUCT
        for path in (ROOT / each).rglob("*.py")
    }
    assert [name for name, text in texts.items() if spoken(text)] == []


def test_no_variable_has_a_kind_on_the_laptop_that_it_has_nowhere_on_aws() -> None:
    sizes = [variables(f"Size={size}", "OutgoingWebhooks=true") for size in ("small", "standard", "large")]
    assert {*of_another_kind(laptop(), [*sizes, variables("OutgoingWebhooks=true", *OWN)])} == BY_PLACE.keys()
