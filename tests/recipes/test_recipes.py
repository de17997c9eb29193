"""Each recipe, carried out on a copy: complete, the gate is green; without any one step, it says which."""

import shutil
from pathlib import Path

import pytest

from tests.recipes.recipe_steps import RECIPES
from tests.recipes.scratch import copied
from tests.support.effort import only_soak
from tests.support.template import ROOT

# An event type is published; tests/integration/test_rules_api.py does what the page says.
NO_CODE = "add-an-event-type"
WITHOUT = "take-a-part-out"  # tests/recipes/test_taken_out_part.py
STEPS = {
    (name, place): each.check
    for name, steps in RECIPES.items()
    for place, each in enumerate(steps)
    if each.check
}
# What notices a step may notice several.
FIRST = {check: step for step, check in reversed(STEPS.items())}.values()
OTHERS = only_soak(
    "tests/recipes/test_recipes.py::test_a_step_left_out_is_named of a step that the same check notices"
)


@pytest.mark.parametrize(
    ("name", "place"), [pytest.param(*each, marks=() if each in FIRST else OTHERS) for each in STEPS], ids=str
)
def test_a_step_left_out_is_named(name: str, place: int, tmp_path: Path) -> None:
    scratch, steps = copied(tmp_path), RECIPES[name]
    left_out = steps[place]
    for each in steps:
        if each is not left_out:
            each.do(scratch)
    ran = scratch.notice(left_out.check)
    assert ran.code == 1, f"nothing noticed: {ran.said[-3000:]}"
    assert left_out.message in ran.said, ran.said[-3000:]


def test_all_recipes_together_pass_the_gate(tmp_path: Path) -> None:
    """The gate runs once on a copy with all of them: six times it would take longer than all other tests."""
    scratch = copied(tmp_path)
    if (known := ROOT / ".mypy_cache").exists():  # of the files that no recipe changes
        shutil.copytree(known, tmp_path / known.name)
    for steps in RECIPES.values():
        for each in steps:
            each.do(scratch)
    # A new feature or column makes items longer: the budget of units is accepted as `make test` says.
    scratch.must(scratch.python("-m", "bench.units"))
    # RUN= takes the tools from this environment: the copy has no uv of its own, nor perhaps the machine.
    scratch.must(scratch.run("make", "--old-file=setup", "RUN=", "check"))


@pytest.mark.parametrize("name", RECIPES)
def test_the_page_names_every_step_and_what_notices_it(name: str) -> None:
    page = (ROOT / "docs" / "recipes" / f"{name}.md").read_text(encoding="utf-8")
    for each in RECIPES[name]:
        assert each.file in page, f"docs/recipes/{name}.md does not name {each.file}"
        assert each.check in page, f"docs/recipes/{name}.md does not name {each.check}"


def test_every_page_is_tried() -> None:
    pages = {each.stem for each in (ROOT / "docs" / "recipes").glob("*.md")}
    assert pages - {"README", NO_CODE, WITHOUT} == set(RECIPES)
