"""Parts of the product that a deployment may leave out (the template's parameters WithLeads, WithQuestions).

A part has a folder in each layer. Its manifest, the module `part` in rules, says what it has, by kind:
stores, entities of the lake, routes. A room that is about all parts asks `said` for a kind. So no other room
knows a part that has a manifest (docs/recipes/take-a-part-out.md).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple


class Part(StrEnum):
    """A part that may be left out."""

    LEADS = "leads"
    QUESTIONS = "questions"


ALL_PARTS = frozenset(Part)
# What a manifest may say, by kind: who asks for it, which tells the form.
KINDS = {
    # rules
    "lake_entities": "rules/lake/entities.py",
    "residues": "rules/lake/residue.py",
    "kept_tables": "rules/lake/table_items.py",
    "stores": "rules/privacy/inventory.py",
    "followed_tables": "rules/regions/changes.py",
    "notices": "rules/outgoing/notices.py",
    # adapters
    "settings": "adapters/settings/choices.py",
    "erasers": "adapters/privacy/stores.py",
    # ingest
    "routes": "ingest/openapi.py",
    "person_routes": "ingest/privacy_api.py",
    "codes": "ingest/web/json_schema.py",
    # processors
    "noticed_changes": "processors/outgoing/notifications.py",
    # analytics
    "nights": "analytics/reconcile/run_report.py",
    "findings": "analytics/reconcile/run_report.py",
    "lake_passes": "analytics/steps/forget_function.py",
    "retention": "analytics/steps/retain_function.py",
    "restores": "local/restore.py",
    "models": "analytics/generated_models.py",
    # local
    "smoke": "local/smoke/cleanup.py",
    "demo": "local/demo.py",
    "traffic": "local/plan/cost.py",
    "commands": "local/cli.py",
    "fingerprints_needed": "local/operate/fingerprint_keys.py",
    # infra
    "filters": "infra/marks.py",
    # bench
    "units": "bench/units/budget.py",
    "threads": "bench/counting/desk.py",
    "benchmarks": "bench/__main__.py",
}
# In a JSON Schema and in the OpenAPI document: the part that all of it is of, and parts of values of `enum`.
OF_PART, VALUES_OF_PARTS = "x-part", "x-values-of-parts"


class PartSettings(NamedTuple):
    """The settings of a part."""

    numbers: Sequence[tuple[str, int, str, int, int]]  # name, default, meaning, least, most
    days: Sequence[tuple[str, str, int]] = ()  # of what leaves: name, meaning, least
    # name, default, its values in words, meaning, and what raises ValueError for a value that is refused
    texts: Sequence[tuple[str, str, str, str, Callable[[str], object]]] = ()
    in_models: tuple[str, ...] = ()  # names of those numbers that SELECTs of models name


def parts_of(parameters: Mapping[str, str]) -> frozenset[Part]:
    """Return the parts that the template's parameters ask for. parameters: those that were given."""
    return frozenset(part for part in Part if parameters.get(f"With{part.title()}", "true") == "true")


def parameters_of(deployed: Collection[Part]) -> dict[str, str]:
    """Return the template's parameters that ask for some parts, and for no others."""
    return {f"With{part.title()}": str(part in deployed).lower() for part in Part}


def is_deployed(part: Part | None, deployed: Collection[Part]) -> bool:
    """Whether what is of a part is there. part: None for what is of none."""
    return part is None or part in deployed


def said(kind: str) -> Iterator[Any]:
    """Yield what each part says of a kind, one of KINDS, in the order of the parts.

    A manifest has its mapping `MANIFEST`: kind -> "module:name". The module is imported here and now.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind {kind!r}: one of {', '.join(KINDS)}")
    for part in Part:
        manifest = f"{__package__}.{part}.part"
        place = import_module(manifest).MANIFEST.get(kind) if find_spec(manifest) else None
        if place:
            module, _, name = place.partition(":")
            yield getattr(import_module(module), name)
