"""Parts that a deployment may leave out: what others say of their resources is put under their conditions.

A fragment with a section `Part` (infra/app/leads.yaml) names a condition, which all its resources have. Other
fragments name these resources as they name any: a variable becomes "" without the part, and what a role or a
list has of the part is left out. A part that can be taken out of the code says in its own fragment what
others have of it, in a section `Elsewhere`: by PLACES, which are marks of theirs, the lines that stand there.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from infra.template_text import parse, sections
from rules.parts import Part

# The marks of other fragments that parts fill.
PLACES = (
    "scheduled_functions",
    *("erasure_variables", "erased_partitions", "erased_items", "erasure_statements"),
    *("publisher_variables", "retention_variables", "retention_statements"),
    *("reconcile_variables", "reconcile_statements"),
)
NOTHING = "!Ref AWS::NoValue"
# What names a resource: !Ref X, !GetAtt X.Arn, or !Sub "${X.Arn}/index/Y", the rest of its text unquoted.
REFERENCE = r'!(?:Ref \w+|GetAtt [\w.]+|Sub (?:"[^"]*"|[^\s,\]}]+))'
NAMED = re.compile(r"!Ref (\w+)|!GetAtt (\w+)|\$\{(\w+)")
STATEMENT = re.compile(r"(?m)^( +)- (?:\{Effect|Effect):.*\n(?:\1 .*\n)*")
VARIABLE = re.compile(rf"(?m)^( +\w+: )({REFERENCE})$")
ITEM = re.compile(rf"(?m)^( +- )({REFERENCE})( +#.*)?$")
FLOW_LIST = re.compile(rf"\[{REFERENCE}(?:, {REFERENCE})*\]")


def marks_of_parts() -> dict[str, str]:
    """Return the text of each mark that parts fill, "" if none does. Raises ValueError for an unknown one."""
    variables = " ".join(f"{part}=${{With{part.title()}}}" for part in Part)
    marks = {
        "deployed_parts": f"PARTS: !Sub {variables} # those that may be left out\n",
        **dict.fromkeys(PLACES, ""),
    }
    for part in Part:
        for name, lines in said_of_part(part, "Elsewhere").items():
            if name not in PLACES:
                raise ValueError(f"infra/app/{part}.yaml: Elsewhere has no {name}: {', '.join(PLACES)}")
            marks[name] += lines
    return marks


def said_of_part(part: Part, section: str) -> dict[str, Any]:
    """Return a section of a part's fragment that is no section of the template, {} if it has none."""
    text = sections(f"infra/app/{part}.yaml").get(section, "")
    return parse(f"{section}:\n{text}")[section] or {}


class Conditions:
    """Which conditions resources have, and which a condition implies."""

    def __init__(self, of_parts: Mapping[str, str], declared: Mapping[str, object]) -> None:
        """of_parts: logical id -> the condition of its part. declared: the template's conditions."""
        self._of_parts, self._declared = of_parts, declared

    def unmet(self, text: str, condition: str) -> set[str]:
        """Return the conditions of parts that a text names resources of, and that a condition lacks."""
        named = {name for match in NAMED.findall(text) for name in match if name}
        return {self._of_parts[name] for name in named & self._of_parts.keys()} - {*self.implied(condition)}

    def is_of_part(self, condition: str) -> bool:
        """Whether it is the condition of a part."""
        return condition in self._of_parts.values()

    def implied(self, condition: str) -> Iterator[str]:
        """Yield a condition, and all that hold whenever it holds."""
        yield condition
        expression = self._declared.get(condition)
        if isinstance(expression, dict):
            for each in expression.get("Fn::And", ()):
                if "Condition" in each:
                    yield from self.implied(each["Condition"])


def guarded(text: str, condition: str, conditions: Conditions) -> str:
    """Return a resource's text in which all that names resources of parts is under the parts' conditions.

    condition: the resource's own, "" for none. Raises ValueError for what has to be guarded by hand.
    """

    def unmet(part: str) -> set[str]:
        return conditions.unmet(part, condition)

    if not unmet(text):
        return text
    written, place = "", 0
    for match in STATEMENT.finditer(text):
        written += _references(text[place : match.start()], unmet)
        written += _statement(match[0], match[1], unmet) or _references(match[0], unmet)
        place = match.end()
    written += _references(text[place:], unmet)
    _check(parse(written), condition, conditions)
    return written


def _references(text: str, unmet: Callable[[str], set[str]]) -> str:
    """Return a text in which each reference to a resource of a part is under the part's condition."""
    text = FLOW_LIST.sub(lambda match: _flow_list(match[0], unmet), text)
    text = VARIABLE.sub(lambda match: _under(match[1], match[2], '""', unmet), text)
    return ITEM.sub(lambda match: _under(match[1], match[2], NOTHING, unmet) + (match[3] or ""), text)


def _check(value: Any, condition: str, conditions: Conditions) -> None:
    """Raise ValueError for a reference to a resource of a part that is under no condition of that part."""
    if isinstance(value, list):
        for item in value:
            _check(item, condition, conditions)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name == "Fn::If" and conditions.is_of_part(inner[0]):
                _check(inner[2], condition, conditions)
            elif name in ("Ref", "Fn::GetAtt", "Fn::Sub") and isinstance(inner, str):
                if missing := conditions.unmet(_as_text(value), condition):
                    raise ValueError(f"put {inner} under {missing.pop()} by hand")
            else:
                _check(inner, condition, conditions)


def _under(before: str, reference: str, otherwise: str, unmet: Callable[[str], set[str]]) -> str:
    missing = unmet(reference)
    return before + (f"!If [{missing.pop()}, {reference}, {otherwise}]" if missing else reference)


def _flow_list(text: str, unmet: Callable[[str], set[str]]) -> str:
    """Return a list within brackets, each of its items under the condition that it needs."""
    items = re.split(r", (?=!)", text[1:-1])
    return f"[{', '.join(_under('', item, NOTHING, unmet) for item in items)}]"


def _statement(text: str, indent: str, unmet: Callable[[str], set[str]]) -> str:
    """Return a statement under a condition, if it is about resources of one part alone; else ""."""
    (statement,) = parse(f"Statement:\n{textwrap.dedent(text)}")["Statement"]
    named = statement.get("Resource", [])
    each = [unmet(_as_text(resource)) for resource in (named if isinstance(named, list) else [named])]
    if not each or not all(each):
        return ""
    if len(missing := set.union(*each)) > 1:
        raise ValueError(f"make a statement for each of {sorted(missing)}: {text}")
    inner = textwrap.indent(textwrap.dedent(text), f"{indent}  ")
    return f"{indent}- !If\n{indent}  - {missing.pop()}\n{inner}{indent}  - {NOTHING}\n"


def _as_text(resource: Any) -> str:
    """Return what names resources in a value of a template, as REFERENCE has it."""
    if isinstance(resource, dict):
        ((name, value),) = resource.items()
        return f"!{name.removeprefix('Fn::')} {value}"
    return str(resource)
