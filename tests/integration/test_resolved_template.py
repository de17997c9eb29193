"""The template, resolved for every set of parameters that decides something, has no fault.

It takes half a minute of CPU, so it is not in the gate. All pairs of values occur, and cfn-lint looks at the
defaults and at each environment of samconfig.toml, unless it has seen them in the same content before. In `make
soak` all triples occur, and cfn-lint looks at each variant of each resource. By hand: python -m infra.lint.
"""

from pathlib import Path

from infra.lint.run import run
from infra.lint.stacks import TEMPLATE
from infra.lint.variants import MEMORY
from tests.support.effort import SOAK, effort


def test_what_cloudformation_and_iam_would_refuse_is_not_there(tmp_path: Path) -> None:
    memory = tmp_path / "found.json" if SOAK else MEMORY
    lines, sets = run(TEMPLATE, memory, strength=effort(2, soak=3))
    assert lines == []
    assert 30 < sets < 300, (  # ten regions, of which three make a set, are most of them
        "fewer leave cases out; many more take minutes of CPU: which parameter has so many values?"
    )
