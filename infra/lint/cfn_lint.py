"""cfn-lint in this process, on a template that is data. Importing it takes seconds: only variants.py does."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import count
from multiprocessing import get_context
from typing import Any

from cfnlint.config import ConfigMixIn
from cfnlint.core import get_rules
from cfnlint.decode.mark import Mark
from cfnlint.decode.node import dict_node, list_node, str_node
from cfnlint.runner.template import run_template_by_data

from infra.lint.stacks import REGION
from infra.lint.variants import Found

# Rules that are silent, and why.
IGNORED = [
    "W3002",  # `sam deploy` packages nested templates
    "W3010",  # zones are resolved to stand-ins
    "W3037",  # checks.actions says it, and knows that the emulator has actions of its own
    "E3505",  # checks.queues says it, for all sets
]
SAID_BY_ROLES = ("E3037", "ManagedPolicyArns")
REASON_CHARACTERS_MAX = 300
PROCESSES = 2


def lint_all(templates: Sequence[Mapping[str, Any]]) -> list[Found]:
    """Lint several templates at the same time, the largest first."""
    if len(templates) < PROCESSES:
        return [lint(each) for each in templates]
    order = sorted(range(len(templates)), key=lambda number: -len(templates[number]["Resources"]))
    with ProcessPoolExecutor(PROCESSES, get_context("fork")) as pool:
        found = dict(zip(order, pool.map(lint, [templates[number] for number in order]), strict=True))
    return [found[number] for number in range(len(templates))]


def lint(template: Mapping[str, Any]) -> Found:
    """Return (section, name, reason) of each fault: section is Resources or Outputs."""
    config = ConfigMixIn(regions=[REGION], ignore_checks=IGNORED)
    found: Found = []
    for match in run_template_by_data(_nodes(template, count(1)), config, _rules()):
        section, name, *path = [*(str(each) for each in match.path or []), "", ""]
        within = [each for each in path if each]
        if (match.rule.id, *within[-1:]) != SAID_BY_ROLES:
            found.append((section, name, _reason(within, match.rule.id, match.message)))
    return found


@cache
def _rules() -> Any:
    return get_rules([], IGNORED, [])


def _nodes(value: Any, lines: Iterator[int]) -> Any:
    """Return data as cfn-lint reads it from a file. It tells faults apart by lines, so each has its own."""
    mark = Mark(next(lines))
    if isinstance(value, dict):
        found = dict_node({}, mark, mark)
        for key, each in value.items():
            found[str_node(key, mark, mark)] = _nodes(each, lines)
        return found
    if isinstance(value, list):
        return list_node([_nodes(each, lines) for each in value], mark, mark)
    return str_node(value, mark, mark) if isinstance(value, str) else value


def _reason(path: list[str], rule: str, message: str) -> str:
    half = REASON_CHARACTERS_MAX // 2
    short = message if len(message) <= REASON_CHARACTERS_MAX else f"{message[:half]} ... {message[-half:]}"
    return f"{'.'.join(path)}: {short} (cfn-lint {rule})"
