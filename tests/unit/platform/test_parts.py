"""What a deployment leaves out is known by nobody: the document, the page, models, erasures, the report."""

import json
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from adapters.settings.parts import deployed_parts
from analytics.reconcile.run_report import FINDINGS_OF_PARTS, NIGHTS_OF_PARTS, markdown, publish
from analytics.warehouse.ddl import SQL, declared_tables
from analytics.warehouse.models import entities_of, models
from infra.api_reference import reference
from ingest.openapi import ROUTES, document
from ingest.web.json_schema import CODES, PART_OF_CODE
from ingest.web.served_parts import served_document, served_page
from rules.lake.entities import ENTITIES
from rules.outgoing.notices import OWNED_KINDS
from rules.parts import ALL_PARTS, KINDS, Part, parameters_of, parts_of, said
from rules.privacy.erasures import Erasure, PersonKind, certificate_of, excluded_stores
from rules.privacy.inventory import BY_NAME, INVENTORY, stores_lacking
from tests.support.template import ROOT, resources

LEADS = Part.LEADS
SOME = [*dict.fromkeys((frozenset(), *(frozenset({part}) for part in Part), ALL_PARTS))]
some_parts = pytest.mark.parametrize("deployed", SOME, ids=lambda parts: "-".join(sorted(parts)) or "none")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@some_parts
def test_a_variable_and_the_parameters_say_which_parts_there_are(deployed: frozenset[Part]) -> None:
    variable = " ".join(f"{part}={str(part in deployed).lower()}" for part in Part)
    assert deployed_parts({"PARTS": variable}) == deployed
    assert parts_of(parameters_of(deployed)) == deployed
    assert deployed_parts({}) == parts_of({}) == ALL_PARTS


def test_a_part_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="'ledgers' is not a valid Part"):
        deployed_parts({"PARTS": "ledgers=true"})


@some_parts
def test_the_document_has_the_routes_of_the_parts_that_there_are(deployed: frozenset[Part]) -> None:
    served = served_document(document(), deployed)
    keys = {(method, path) for path, methods in served["paths"].items() for method in methods}
    assert keys == {
        (route.method, route.path) for route in ROUTES if route.part is None or route.part in deployed
    }
    assert "x-" not in json.dumps(served)
    codes = served["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]
    for code, part in PART_OF_CODE.items():
        assert (code in codes["enum"]) == (f"{code}: " in codes["description"]) == (part in deployed)
    assert "sold_out" in codes["enum"]
    for code, part in PART_OF_CODE.items():
        _, _, words = CODES[code].rpartition("; ")
        assert (words in codes["description"]) == (part in deployed), "a meaning may have a semicolon"
    types = served["paths"]["/v1/webhook-endpoints"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    assert ("lead.updated" in types["properties"]["types"]["items"]["enum"]) == (LEADS in deployed)
    for kind in OWNED_KINDS:
        assert (kind.whose in types["properties"]) == (kind.part in deployed)


@some_parts
def test_the_page_has_the_operations_of_the_parts_that_there_are(deployed: frozenset[Part]) -> None:
    page = served_page(reference(document()), deployed)
    assert "<!--" not in page
    for route in ROUTES:
        is_shown = f"<code>{route.path}</code> <span>" in page
        assert is_shown or (route.part and route.part not in deployed), route.path
        if route.part and not any(each.path == route.path and each.part is None for each in ROUTES):
            assert is_shown == (route.part in deployed), route.path
    assert (">Leads</h2>" in page) == (LEADS in deployed)


@some_parts
def test_models_need_no_rows_of_a_part_that_is_left_out(deployed: frozenset[Part]) -> None:
    found = models(deployed=deployed)
    read = set().union(*(entities_of(model, found) for model in found.values()))
    entities = {name for name, entity in ENTITIES.items() if entity.part is None or entity.part in deployed}
    assert read & ENTITIES.keys() <= entities
    assert ENTITIES.keys() & declared_tables(deployed).keys() <= entities
    assert {"marts.data_quality", "marts.streaks_recomputed", "facts.loaded_rows"} <= found.keys()
    assert ("marts.rfm_segments" in found) == (LEADS in deployed)
    for part in Part:
        folder = SQL / "models" / part  # of leads there is none
        for path in folder.rglob("*.yml"):
            assert (f"{path.parent.name}.{path.stem}" in found) == (part in deployed)
    for model in found.values():
        assert {name for name in model.reads if not name.startswith("lake.")} <= found.keys(), model.name


@some_parts
def test_an_erasure_goes_through_the_stores_that_there_are(deployed: frozenset[Part]) -> None:
    lacking = stores_lacking(deployed)
    for kind in PersonKind:
        erasure = Erasure("e", kind, "ann", "digest", "2026-03-01T00:00:00.000000Z", lacking=lacking)
        planned = {store.name for store in erasure.online_plan}
        assert not planned & {*lacking}
        assert ("Event" in planned) == (kind is PersonKind.LEAD and LEADS in deployed)
        certificate = certificate_of(erasure, NOW)
        assert {*lacking} <= certificate["other_stores"].keys() | {
            each["store"] for each in certificate["stores"]
        }
        assert all(
            certificate["other_stores"].get(name, "not deployed") == "not deployed" for name in lacking
        )
        assert excluded_stores(kind, lacking).keys() >= excluded_stores(kind).keys()


def test_each_store_of_a_part_s_fragment_says_so() -> None:
    conditions = {f"Has{part.title()}": part for part in Part}
    for kind in ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::SNS::Topic"):
        for name, resource in resources(kind).items():
            if name in BY_NAME:
                assert BY_NAME[name].part == conditions.get(resource.get("Condition", "")), name
    of_entities = {store.name: store for store in INVENTORY if store.name in ENTITIES}
    assert of_entities.keys() == ENTITIES.keys()


REPORT: Any = {
    **dict.fromkeys(("error", "root", "spark")),
    **{
        name: []
        for name in (
            *("different", "unrepaired", "contended", "frozen", "differences", "ledger_and_lake"),
            *(
                "warehouse_and_lake",
                "failed_tests",
                "curation",
                "curation_failures",
                "odd_objects",
                "failed_shares",
            ),
        )
    },
    "findings": {each.field: [] for each in FINDINGS_OF_PARTS},
    "run_id": "r",
    "made_at": "2026",
    "counts": {},
    "spared": {},
    "of_parts": {
        each.field: each.short_result(FolderObjects(Path("nowhere")), "r", 1) for each in NIGHTS_OF_PARTS
    },
    "warehouse": {"error": None, "not_done": [], "lacks": {}, "unread": None, "quiet_since": ""},
    "rebuild": {"raw_deleted_before": None, "without_raw": []},
}


@some_parts
def test_the_report_is_about_the_parts_that_there_are(deployed: frozenset[Part], tmp_path: Path) -> None:
    objects: Any = FolderObjects(tmp_path)
    report: Any = {**REPORT, "parts": sorted(deployed)}
    for_machines = json.loads(objects.get(publish(objects, report)[0]))
    text = markdown(report)
    assert ("leads" in for_machines) == ("## Leads" in text) == (LEADS in deployed)
    for each in NIGHTS_OF_PARTS:
        assert (each.field in for_machines) == (each.part in deployed)
    assert "## Curation" in text


def test_each_manifest_names_kinds_that_somebody_asks_for_and_things_that_are_there() -> None:
    named = set()
    for part in Part:
        manifest = f"rules.{part}.part"
        if find_spec(manifest):
            named |= {*import_module(manifest).MANIFEST}
    assert named <= KINDS.keys()
    for kind, room in KINDS.items():
        assert (ROOT / room).exists()
        assert f'said("{kind}")' in (ROOT / room).read_text(), f"{room} does not ask for {kind}"
        assert all(each is not None for each in said(kind))


def test_a_kind_that_nobody_asks_for_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind 'shops': one of lake_entities, "):
        next(said("shops"))
