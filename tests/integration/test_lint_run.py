"""The lint as a whole, on a small template: every set, cfn-lint, and what a line says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from infra.lint import variants
from infra.lint.parameter_sets import parameter_sets
from infra.lint.run import run
from infra.lint.stacks import Stack, resolve_stacks
from infra.lint.variants import Found, jobs, remember_findings
from tests.support.lint_world import planted


def test_a_sound_template_has_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "_lint", lambda templates: [[] for _ in templates])
    template = planted(tmp_path)
    lines, sets = run(template, tmp_path / "memory.json")
    assert lines == []
    assert sets == len(parameter_sets(template))


EXPECTED = """\
/ parameters: there is no parameter Size (for instance with Size=10 and --config-env=large)
/ Function: it names Network, which is not made: its condition HasCache does not hold (with the defaults)
/ FunctionRole: its policy FunctionRolePolicy0 names an action that does not exist: dynamodb:GetItems (with the defaults)
/ Table: Properties.Columns: Additional properties are not allowed ('Columns' was unexpected) (cfn-lint E3002) (with Issuer=https://example.com and Audience=example)
/ Never: the condition is false in every set, so nobody sees what it decides
""".splitlines()


def test_each_fault_is_said_once_with_its_parameters(tmp_path: Path) -> None:
    template = planted(
        tmp_path,
        ("      KeySchema:", "      Columns: !If [HasIssuer, 2, !Ref AWS::NoValue]\n      KeySchema:"),
        ("Action: [dynamodb:GetItem,", "Action: [dynamodb:GetItems,"),
        ("  HasIssuer:", "  Never: !Equals [a, b]\n  HasIssuer:"),
        ("      VpcConfig: !If\n        - HasCache", "      VpcConfig: !If\n        - OnAws"),
    )
    (tmp_path / "samconfig.toml").write_text('[large.deploy.parameters]\nparameter_overrides = ["Size=10"]\n')
    lines, _ = run(template, tmp_path / "memory.json")
    assert lines == EXPECTED


def test_every_variant_gets_to_cfn_lint_once(tmp_path: Path) -> None:
    template = planted(tmp_path)
    sets = [resolve_stacks(each, template) for each in parameter_sets(template)]
    todo = jobs(sets, [0])
    assert todo[0].sets.keys() == {*sets[0]["/"].resources, "Outputs"}
    for number, stacks in enumerate(sets):
        for stack in stacks.values():
            for name, resource in stack.resources.items():
                found = [job for job in todo if job.stack == stack.path and job.new.get(name) == resource]
                assert len(found) == 1
                assert number in found[0].sets[name]


def test_what_a_variant_refers_to_is_there_but_not_linted(tmp_path: Path) -> None:
    template = planted(tmp_path)
    sets: list[dict[str, Stack]] = [
        resolve_stacks({}, template),
        resolve_stacks({"CreateCache": "true"}, template),
    ]
    (_, root, network) = jobs(sets, [0])
    assert set(root.new) == {"Network", "Function"}
    assert {"Table", "Queue", "FunctionRole"} <= {*root.stubs} | {"Queue"}
    assert network.stack == "/Network"


def test_only_new_content_is_looked_at(tmp_path: Path) -> None:
    looked: list[Any] = []

    def look(contents: Sequence[Any]) -> list[Found]:
        looked.extend(contents)
        return [[("seen", str(each))] for each in contents]

    path = tmp_path / "deep" / "memory.json"
    assert remember_findings(path, "1", ["a", "b"], look) == [[("seen", "a")], [("seen", "b")]]
    assert remember_findings(path, "1", ["b", "c"], look) == [[("seen", "b")], [("seen", "c")]]
    assert looked == ["a", "b", "c"]
    remember_findings(path, "2", ["b"], look)
    assert looked == ["a", "b", "c", "b"]
    path.write_text("{broken")
    remember_findings(path, "2", ["b"], look)
    assert looked[-2:] == ["b", "b"]
