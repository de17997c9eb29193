"""docs/recipes/take-a-part-out.md, carried out on a copy: the rest's tests pass."""

import re
from pathlib import Path

from tests.recipes.scratch import Scratch, copied
from tests.support.template import ROOT

PAGE = ROOT / "docs/recipes/take-a-part-out.md"
PART = "questions"
MESSAGES = "tests/unit/outgoing/test_message_bodies.py"
TESTS = (
    *("tests/infra", "tests/unit/outgoing", "tests/unit/privacy", "tests/unit/regions", "tests/unit/plan"),
    *(f"tests/unit/local/test_{name}.py" for name in ("commands", "smoke_faults", "preflight")),
    *(f"tests/unit/lake/test_{name}.py" for name in ("writers", "table_items", "warehouse_columns")),
    *(f"tests/unit/platform/test_{name}.py" for name in ("parts", "settings", "choices", "page")),
)
# These hold pages against the code. Whoever carries the recipe out rewrites the pages.
OF_PAGES = (
    *("--ignore=tests/infra/test_tables_page.py", "--ignore=tests/infra/test_retention.py"),
    f"--deselect={MESSAGES}::test_the_page_names_each_type_with_its_fields_and_its_example_is_one",
)


def test_without_a_part_s_folders_and_its_line_the_rest_is_whole(tmp_path: Path) -> None:
    scratch = copied(tmp_path)
    as_committed(scratch)
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        scratch.must(scratch.run("bash", "-euo", "pipefail", "-c", re.sub(r"(?m)^ +", "", block)))
    assert not [*tmp_path.glob(f"*/{PART}")]
    assert f"With{PART.title()}" not in (tmp_path / "template.yaml").read_text()
    scratch.must(scratch.run("lint-imports", "--no-cache"))
    scratch.must(scratch.python("-m", "infra.assemble", "--check"))
    tests = ("-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup", *TESTS, *OF_PAGES)
    scratch.must(scratch.python("-m", "pytest", *tests))


def as_committed(scratch: Scratch) -> None:
    """Let git know the copy's files: the recipe asks git for them."""
    scratch.must(scratch.run("git", "init", "-q"))
    scratch.must(scratch.run("git", "add", "-A"))
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    scratch.must(scratch.run("git", *who, "commit", "-qm", "copy"))
