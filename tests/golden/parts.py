"""What is recorded: each part yields lines of text, one for each thing that may differ.

A line begins with what it is about, so that a difference says where to look.
"""

import json
import random
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import decode_item
from adapters.platform.objects import FolderObjects
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import models
from infra.stacks import resolve_stacks
from ingest.openapi import document
from local.event_sources import from_csv
from rules.lake.entities import ENTITIES
from tests.golden.day_of_an_app import play
from tests.oracle.machines import Stream
from tests.oracle.plans import Plan, planned
from tests.oracle.rounds import round_of
from tests.support.engine import TABLES, Engine, running
from tests.support.lake_story import Story
from tests.support.lead_histories import History, features_of
from tests.support.raw_lake import rows
from tests.support.real_input import COMMITS
from tests.support.site import site
from tests.support.town import lived_in
from tests.support.webhooks import CONTEXT, GOOD, decode

ROUNDS = 200
TOWN = 60
STREAM_POSITION = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+/\d{20,}")
# Their content is chance's or the build's, not Streakline's.
GENERATED = {"CodeUri", "ContentUri", "TemplateURL"}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _leaves(place: str, value: Any) -> Iterator[str]:
    """Give a line for each leaf of a document."""
    if isinstance(value, dict) and value:
        for name in sorted(value):
            if name not in GENERATED:
                yield from _leaves(f"{place}.{name}", value[name])
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from _leaves(f"{place}[{number}]", each)
    else:
        yield f"{place} = {_text(value)}"


def resources() -> Iterator[str]:
    """Each property of each resource that CloudFormation would make, for each size."""
    for size, given in {"default": {}, "standard": {"Size": "standard"}, "large": {"Size": "large"}}.items():
        for path, stack in resolve_stacks(given).items():
            yield from _leaves(f"{size} {path}", dict(stack.resources))


def openapi() -> Iterator[str]:
    """Each leaf of the OpenAPI document."""
    yield from _leaves("openapi", document())


def warehouse() -> Iterator[str]:
    """Each column and each row of every table, staging's and the models', over the story of a lake."""
    with tempfile.TemporaryDirectory() as folder:
        objects = FolderObjects(Path(folder) / "lake")
        made = DuckWarehouse(Path(folder) / "w.duckdb", str(Path(folder) / "lake"), objects)
        story = Story()
        with made.kept_open():
            for number, tell in enumerate((story.first_part, story.late_part)):
                prepare(made)
                Loader(made, objects, str(Path(folder) / "lake"), "").load(
                    f"n{number}", tell().write(objects)
                )
                build(made, set(models()))
            listed = made.rows(
                "SELECT table_schema || '.' || table_name AS name, column_name, data_type"
                " FROM information_schema.columns"
            )
            yield from (f"column {each['name']} {each['column_name']} {each['data_type']}" for each in listed)
            for name in sorted({each["name"] for each in listed}):
                yield from (f"row {name} {_text(each)}" for each in made.rows(f"SELECT * FROM {name}"))


def leads() -> Iterator[str]:
    """What each source's payloads become, and features of random histories of leads."""
    for source, payloads in sorted(GOOD.items()):
        for number, payload in enumerate(payloads):
            for each in decode(source, payload, CONTEXT):
                yield f"{source} {number} {each}"
    history = History(3, leads=20, events=400, times=2)
    for lead in history.leads:
        as_of = datetime(2026, 7, 1, tzinfo=UTC)
        yield f"features {lead} {_text(features_of(history.events, lead, as_of))}"


def town() -> Iterator[str]:
    """Items, lake rows and a night's report of a town whose users lived, with events late, twice and shuffled."""
    with (
        running() as engine,
        tempfile.TemporaryDirectory() as folder,
        lived_in(engine, Path(folder), "golden", TOWN) as town,
    ):
        yield from _items(engine)
        for entity in ENTITIES:
            yield from (f"lake {entity} {_text(each)}" for each in rows(town.objects, entity))
        yield from _leaves("report", town.reconcile("golden"))


def app() -> Iterator[str]:
    """Answers of the API to what an app's users, its operators and its agents do in three weeks, and all items."""
    with running() as engine, site(engine) as prepared:
        yield from play(prepared)
        yield from _items(engine)


def histories() -> Iterator[str]:
    """Items of everybody in a real history, sent in a shuffled order and partly twice."""
    with running() as engine, site(engine) as prepared:
        bodies = list(from_csv(COMMITS))
        chance = random.Random("histories")
        bodies += chance.sample(bodies, len(bodies) // 10)
        chance.shuffle(bodies)
        for first in range(0, len(bodies), 100):
            answered = prepared.admin("POST", "/v1/events", {"events": bodies[first : first + 100]})
            yield f"answer {first} {_text(answered)}"
            prepared.settle()
        yield from _items(engine)


def oracle() -> Iterator[str]:
    """Answers and items of ROUNDS rounds of the oracle: races, lost answers, processes that die."""
    with running() as engine, pytest.MonkeyPatch.context() as patch:
        for name, value in engine.environment().items():
            patch.setenv(name, value)
        stream = Stream(engine)
        for seed in range(ROUNDS):
            yield from _round(engine, stream, planned(seed), patch)
        yield from _items(engine)


def _round(engine: Engine, stream: Stream, plan: Plan, patch: pytest.MonkeyPatch) -> Iterator[str]:
    with patch.context() as wiring:
        played = round_of(engine, stream, plan, f"o{plan.seed}", wiring)
        yield f"round {plan.seed} wrong {_text(played.play())}"
        yield f"round {plan.seed} steps {played.machines.step} commits {len(played.machines.commits)}"


def _items(engine: Engine) -> Iterator[str]:
    """Each item of each table."""
    client = engine.client("dynamodb")
    for table in TABLES:
        for page in client.get_paginator("scan").paginate(TableName=table):
            yield from (f"item {table} {_text(_readable(decode_item(each)))}" for each in page["Items"])


def _readable(item: Any) -> Any:
    """The item without its place in a stream of the emulator, which counts by the wall's clock."""
    return {
        name: sorted(value)
        if isinstance(value, set)
        else STREAM_POSITION.sub("<position>", value)
        if isinstance(value, str)
        else value
        for name, value in item.items()
    }


PARTS: dict[str, Callable[[], Iterable[str]]] = {
    each.__name__: each for each in (resources, openapi, warehouse, leads, town, app, histories, oracle)
}
