"""What users can meet is in the OpenAPI document: every route, error code, event type, source and feature."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from ingest import openapi
from ingest.leads import sources
from ingest.web.json_schema import CODES
from ingest.web.routes import Route
from rules.leads.features import FEATURES
from tests.support.books import TYPES
from tests.support.template import ROOT

DOCUMENT = openapi.document()
POINTS_PAGE = ROOT / "docs" / "rules" / "points.md"


def codes_in(source: str) -> Iterator[str]:
    """Yield the codes that a module's refusals carry: ApiError(status, CODE, ...), InputRefused(CODE, ...)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = {"ApiError": 1, "InputRefused": 0, "FriendsRefused": 0}.get(node.func.id)
            if place is not None and len(node.args) > place:
                given = node.args[place]
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value


@cache
def used_codes() -> dict[str, str]:
    """By code, a file that refuses with it."""
    files = [*(ROOT / "ingest").rglob("*.py"), *(ROOT / "rules").rglob("*.py")]
    return {code: str(each.relative_to(ROOT)) for each in files for code in codes_in(each.read_text())}


def test_every_code_of_a_refusal_is_described() -> None:
    unknown = {code: file for code, file in used_codes().items() if code not in CODES}
    assert not unknown, f"ingest/web/json_schema.py lacks {unknown}"
    assert set(CODES) == set(used_codes()), "ingest/web/json_schema.py lists a code that nothing refuses with"


def test_the_documented_points_are_those_of_the_shipped_book() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \| (\d+) \|$", POINTS_PAGE.read_text(), re.MULTILINE)
    documented = {name: (int(points), int(most)) for name, points, most in rows}
    declared = {name: (each.points, each.cap_points) for name, each in TYPES.items()}
    assert documented == declared, (
        f"docs/rules/points.md and rules/book/shipped.json differ: {set(documented.items()) ^ set(declared.items())}"
    )


def test_every_source_is_listed() -> None:
    body = DOCUMENT["paths"]["/v1/leads/events"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["properties"]["source"]["enum"] == sources.names()


def test_every_feature_is_described() -> None:
    answer = DOCUMENT["paths"]["/v1/leads/{lead_id}/features"]["get"]["responses"]["200"]
    listed = answer["content"]["application/json"]["schema"]["properties"]["features"]["properties"]
    assert {name: each["description"] for name, each in listed.items()} == {
        each.name: each.doc for each in FEATURES
    }


@pytest.mark.parametrize("route", openapi.ROUTES, ids=lambda each: each.key)
def test_every_route_says_what_it_does(route: Route) -> None:
    assert len(route.summary) > 3, f"{route.key} needs a summary"
