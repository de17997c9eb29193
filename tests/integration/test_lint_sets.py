"""The sets of parameters that the lint makes: they follow from the templates, and Rules refuse none of them."""

from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.lint.faults import fewest_parameters, parameters_in_words
from infra.lint.parameter_sets import Space, covering_rows, domains, environments, parameter_sets
from infra.lint.stacks import resolve_stacks
from tests.support.lint_world import planted

NAMES = "abcdef"


@given(
    st.lists(st.integers(1, 3), min_size=3, max_size=6),
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))),
)
def test_every_combination_that_is_allowed_occurs(sizes: list[int], excluded: set[tuple[int, int]]) -> None:
    """Excluded pairs may not both have another value than their first one."""
    space = {name: [str(value) for value in range(size)] for name, size in zip(NAMES, sizes, strict=False)}

    def allowed(row: dict[str, str]) -> bool:
        values = [*row.values(), *"000000"]
        return not any(values[one] != "0" and values[other] != "0" for one, other in excluded)

    rows = covering_rows(Space(space, allowed), 2)
    assert rows[0] == dict.fromkeys(space, "0")
    assert all(allowed(row) for row in rows)
    possible = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    wanted = {pair for row in possible if allowed(row) for pair in combinations(row.items(), 2)}
    assert {pair for row in rows for pair in combinations(row.items(), 2)} == wanted


def test_few_rows_cover_much() -> None:
    space = {f"p{number}": ["a", "b"] for number in range(16)}
    assert len(covering_rows(Space(space, lambda _: True), 2)) <= 12
    assert len(covering_rows(Space(space, lambda _: True), 3)) <= 32


def test_values_follow_from_conditions_rules_and_what_may_be_empty(tmp_path: Path) -> None:
    deciding, others = domains(planted(tmp_path))
    assert deciding == {
        "OnAws": ["true", "false"],
        "CreateCache": ["false", "true"],
        "CacheUrl": ["", "redis://example.com"],
        "Issuer": ["", "https://example.com"],
        "Audience": ["", "example"],
    }
    assert others == {}


def test_an_account_that_a_condition_looks_at_has_values_as_a_parameter_has(tmp_path: Path) -> None:
    mine = 'OnAws: !Not [!Equals [!Ref AWS::AccountId, "000000000000"]]'
    template = planted(tmp_path, ('OnAws: !Equals [!Ref OnAws, "true"]', mine))
    assert domains(template)[0]["AWS::AccountId"] == ["123456789012", "000000000000"]
    sets = parameter_sets(template)
    assert sets[0] == {}
    cached = [each for each in sets if "CreateCache" in each]
    assert {True, False} == {"AWS::AccountId" in each for each in cached}
    for each in cached:
        made = resolve_stacks(each, template)["/"].resources
        assert ("Network" in made) == ("AWS::AccountId" not in each)


def test_a_parameter_that_picks_from_a_table_decides_what_the_table_does(tmp_path: Path) -> None:
    size = "Parameters:\n  Size: {Type: String, Default: s, AllowedValues: [s, m, l]}\n"
    table = 'Mappings:\n  Sizes:\n    Cache: {s: "false", m: "false", l: "true"}\nRules:\n'
    picks = '!Or [!Equals [!FindInMap [Sizes, Cache, !Ref Size], "true"], !Equals [!Ref CreateCache, "true"]]'
    cached = ('!Equals [!Ref CreateCache, "true"]]', f"{picks}]")
    template = planted(tmp_path, ("Parameters:\n", size), ("Rules:\n", table), cached)
    assert domains(template)[0]["Size"] == ["s", "m", "l"]
    sets = [each for each in parameter_sets(template) if "CreateCache" not in each and "OnAws" not in each]
    assert {True, False} == {each.get("Size") == "l" for each in sets}
    for each in sets:
        assert resolve_stacks(each, template)["/"].conditions["HasCache"] == (each.get("Size") == "l")


def test_a_new_parameter_and_a_new_condition_are_covered_without_a_list(tmp_path: Path) -> None:
    more = """Parameters:
  Days: {Type: Number, Default: 7, MinValue: 1, MaxValue: 90}
  Mode: {Type: String, Default: slow}
  Size: {Type: String, Default: s, AllowedValues: [xs, s, m, l]}
"""
    condition = "Conditions:\n  Fast: !Equals [!Ref Mode, fast]\n"
    template = planted(tmp_path, ("Parameters:\n", more), ("Conditions:\n", condition))
    deciding, others = domains(template)
    assert deciding["Mode"] == ["slow", "fast", "example"]
    assert others == {"Days": ["7", "1", "90"], "Size": ["s", "xs", "l"]}
    sets = parameter_sets(template)
    assert {"Days": "90"} in sets
    assert {"Size": "xs"} in sets
    assert any(each.get("Mode") == "fast" and each.get("CreateCache") == "true" for each in sets)


def test_what_a_nested_template_decides_by_is_covered(tmp_path: Path) -> None:
    network = "Parameters: {Zones: {Type: Number, Default: 2}}\nConditions: {One: !Equals [!Ref Zones, 1]}\nResources: {}\n"
    template = planted(
        tmp_path,
        ("Parameters:\n", "Parameters:\n  Zones: {Type: Number, Default: 2}\n"),
        ("{TemplateURL: network.yaml}", "{TemplateURL: network.yaml, Parameters: {Zones: !Ref Zones}}"),
        network=network,
    )
    assert domains(template)[0]["Zones"] == ["2", "1"]


def test_no_set_is_refused_and_each_condition_is_seen_both_ways(tmp_path: Path) -> None:
    template = planted(tmp_path)
    sets = parameter_sets(template)
    assert sets[0] == {}
    held = [resolve_stacks(each, template)["/"].conditions for each in sets]
    assert all({True, False} == {each[name] for each in held} for name in held[0])
    assert not any(each.get("Issuer") and not each.get("Audience") for each in sets)
    assert not any(each.get("CreateCache") and each.get("CacheUrl") for each in sets)


def test_a_parameter_without_a_known_value_is_an_error(tmp_path: Path) -> None:
    odd = 'Parameters:\n  Odd: {Type: String, Default: "", AllowedPattern: "(q{9})?"}\n'
    with pytest.raises(ValueError, match="no value for the parameter Odd"):
        domains(planted(tmp_path, ("Parameters:\n", odd)))


@pytest.mark.parametrize("given", ["\"A=1 B='x y'\"", '["A=1", "B=x y"]'])
def test_environments_are_read_from_samconfig(tmp_path: Path, given: str) -> None:
    text = f"version = 0.1\n[default.build.parameters]\nparallel = true\n[large.deploy.parameters]\nparameter_overrides = {given}\n"
    (tmp_path / "samconfig.toml").write_text(text + "[small.deploy.parameters]\nstack_name = 'x'\n")
    assert environments(tmp_path / "samconfig.toml") == {"large": {"A": "1", "B": "x y"}, "small": {}}


def test_a_fault_is_told_with_the_parameters_that_it_needs() -> None:
    given = {"A": "1", "B": "", "C": "2"}
    assert fewest_parameters(given, lambda fewer: fewer.get("A") == "1" and "B" in fewer) == {
        "A": "1",
        "B": "",
    }
    assert fewest_parameters(given, lambda _: True) == {}
    assert parameters_in_words({"A": "1", "B": ""}) == "A=1 and B=nothing"
    assert parameters_in_words({}) == "the defaults"


def test_what_only_rules_could_refuse_is_among_the_sets(tmp_path: Path) -> None:
    sets = parameter_sets(planted(tmp_path, ("Rules:\n", "Metadata:\n")))
    assert any(each.get("Issuer") and "Audience" not in each for each in sets)
    assert any("CreateCache" in each and "CacheUrl" in each and "OnAws" not in each for each in sets)


def test_a_value_that_needs_two_others_is_reached() -> None:
    space = {name: ["", "x"] for name in NAMES}

    def allowed(row: dict[str, str]) -> bool:
        return not row["a"] or bool(row["b"] and row["c"])

    rows = covering_rows(Space(space, allowed), 3)
    assert any(row["a"] and row["d"] and not row["e"] for row in rows)
