"""A contract that is published can judge events; a new one takes whatever the one before took."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ingest.book_document import book_of_document
from ingest.web.validate import first_problem
from rules.book.contracts import MATCHED_MAX, PATTERN_MAX, breaking_changes, contract_faults
from rules.book.document import BookRefused

bounds = st.fixed_dictionaries({}, optional={"minimum": st.integers(-2, 2), "maximum": st.integers(-2, 4)})
lengths = st.fixed_dictionaries({}, optional={"minLength": st.integers(0, 2), "maxLength": st.integers(0, 3)})
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
simple = st.builds(
    lambda *parts: {name: value for part in parts for name, value in part.items()},
    st.just({})
    | kinds.map(lambda name: {"type": name})
    | st.lists(kinds, min_size=1).map(lambda t: {"type": t}),
    bounds,
    lengths,
    st.just({})
    | st.lists(st.integers(-2, 2) | st.text("ab", max_size=2) | st.booleans() | st.none(), min_size=1).map(
        lambda e: {"enum": e}
    ),
    st.just({}) | st.sampled_from(["^a", "b$"]).map(lambda p: {"pattern": p, "maxLength": 9}),
)
names = st.sampled_from(["p", "q"])


def grown(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(names, inner, max_size=2),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "items": inner,
        },
    )


contracts = st.recursive(simple, grown, max_leaves=4).filter(lambda each: not list(contract_faults(each)))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.sampled_from([0.5, 1.0]) | st.text("ab", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names | st.just("r"), inner, max_size=2),
    max_leaves=4,
)


@given(contracts, contracts, values)
def test_what_the_old_contract_took_the_new_one_takes(
    old: dict[str, Any], new: dict[str, Any], value: Any
) -> None:
    assume(not list(breaking_changes(old, new)))
    if first_problem(old, value) is None:
        assert first_problem(new, value) is None, (old, new, value)


@given(contracts)
def test_a_contract_does_not_break_itself_and_none_takes_all(contract: dict[str, Any]) -> None:
    assert list(breaking_changes(contract, contract)) == []
    assert list(breaking_changes(contract, None)) == []


def test_what_breaks_is_told_by_its_place() -> None:
    pages = {"type": "integer", "maximum": 100}
    old = {"properties": {"pages": pages, "tags": {"items": {"maxLength": 9}}, "theme": {}}}
    new = {
        "properties": {"pages": {"type": "integer", "maximum": 50}, "tags": {"items": {"maxLength": 8}}},
        "additionalProperties": False,
    }
    assert dict(breaking_changes(old, new)) == {
        ("additionalProperties",): "are no longer allowed",
        ("properties", "pages", "maximum"): "is lower than it was",
        ("properties", "tags", "items", "maxLength"): "is lower than it was",
        ("properties", "theme"): "is no longer allowed",
    }


Json = dict[str, Any]


def test_a_property_that_no_event_could_have_may_be_declared_in_any_way() -> None:
    assert not list(breaking_changes({"additionalProperties": False}, of_property(type="integer")))
    assert list(breaking_changes({}, of_property(type="integer")))


def of_property(**said: Any) -> Json:
    return {"properties": {"pages": said}}


def book_with(contract: Json) -> Json:
    return {"event_types": {"READ": {"points": 1, "properties": contract}}}


def test_faults_are_told_in_the_order_of_the_contract() -> None:
    named = [f"k{number * 7 % 23}" for number in range(23)]
    assert [path for path, _ in contract_faults(dict.fromkeys(named))] == [(name,) for name in named]


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        ({"properties": {"a": 5}}, "properties.a is no object"),
        ({"minLength": -1}, "minLength must be a whole number"),
        ({"properties": [1]}, "properties must be an object"),
        ({"properties": {}, "default": 1}, "default is no keyword of a contract: additionalProperties, "),
        ({"required": ["a", "a"]}, "required has a name twice"),
        ({"required": ["a"], "additionalProperties": False}, "required has a, which is no property"),
        ({"type": "text"}, "type must be of string, integer"),
        (of_property(type=5), "properties.pages.type must be of"),
        (of_property(items={"minLength": -1}), "properties.pages.items.minLength must be a whole number"),
        (of_property(type=[[]]), "properties.pages.type must be of"),
        (of_property(type={"string": 1}), "properties.pages.type must be of"),
        # A validator would fetch the address.
        (of_property(enum=[{"$ref": "http://example.com"}]), "properties.pages.enum must be a list of"),
        (of_property(description={"$ref": "#/nowhere"}), "properties.pages.description must be a text"),
        ({"pattern": "[", "maxLength": 5}, "pattern is no regular expression"),
        ({"pattern": "a{99999999999}", "maxLength": 5}, "pattern is no regular expression"),
        # Such patterns take for ever on some texts.
        ({"pattern": "^(a+b?)+$", "maxLength": 99}, "pattern may have 2 repetitions and no groups"),
        ({"pattern": "^(a|a)*$", "maxLength": 99}, "pattern may have 2 repetitions and no groups"),
        ({"pattern": "^.*.*.*x$", "maxLength": 99}, "pattern may have 2 repetitions and no groups"),
        ({"pattern": r"(a)\1", "maxLength": 99}, "pattern may have 2 repetitions and no groups"),
        ({"pattern": "^.*.*x$", "maxLength": 2000}, "pattern needs a maxLength of up to 256"),
        ({"pattern": "^.*.*x$"}, "pattern needs a maxLength of up to 256"),
        (of_property(minimum=5, maximum=4), "properties.pages.minimum is above maximum: no value satisfies"),
        (of_property(minItems=5, maxItems=4), "properties.pages.minItems is above maxItems: no value"),
        (of_property(enum=list(range(25_000))), " has 1"),
        (of_property(pattern="^[$]5$", maxLength=9), " cannot be used"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_no_contract_is_refused(contract: Json, told: str) -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(book_with(contract))
    place = "event_types.READ.properties"
    assert str(refused.value).startswith((f"{place}.{told}", f"{place}{told}"))


@pytest.mark.parametrize(
    "contract",
    [
        of_property(pattern="a" * PATTERN_MAX, maxLength=MATCHED_MAX),
        of_property(minimum=-1.5, maximum=-1.5),
        of_property(minLength=5, maxLength=5),
    ],
    ids=json.dumps,
)
def test_a_contract_that_is_published_can_judge_events(contract: Json) -> None:
    book = book_of_document(book_with(contract))
    first_problem({"type": "object", **(book.event_types["READ"].properties or {})}, {"pages": 1})


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (of_property(type=["string", "null"]), of_property(enum=[None]), "text"),
        (of_property(enum=[1]), of_property(enum=[True]), 1),
        (of_property(enum=[0, 1]), of_property(enum=[False, True]), 1),
    ],
    ids=str,
)
def test_values_of_other_json_types_are_others(old: Json, new: Json, value: Any) -> None:
    assert first_problem(old, {"pages": value}) is None
    assert list(breaking_changes(old, new))
