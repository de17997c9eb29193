"""A contract that `breaks` lets pass takes whatever the old one took."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from ingest.web.validate import first_problem
from rules.book.contracts import breaking_changes, contract_faults

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
