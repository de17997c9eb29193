"""ARNs that are right in one partition only: arn:aws: is not China's, nor the government's."""

import re
from collections.abc import Iterator
from pathlib import Path

from infra.lint.checks.found import texts
from infra.lint.expanded import read
from infra.lint.faults import Fault

LITERAL = re.compile(r"arn:aws[a-z-]*:[^\s\"']*")


def faults(template: Path) -> Iterator[Fault]:
    """Find literal partitions in a template, as it is written, and in the state machines that it names."""
    loaded = read(template)
    for name, resource in loaded["Resources"].items():
        found = list(texts(resource))
        definitions = [text for path, text in found if path[-1] == "DefinitionUri"]
        for text in (
            *(text for _, text in found),
            *((template.parent / each).read_text() for each in definitions),
        ):
            for arn in dict.fromkeys(LITERAL.findall(text)):
                yield Fault(template.name, name, f"{arn} is of one partition only: say ${{AWS::Partition}}")
