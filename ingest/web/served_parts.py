"""Takes from the OpenAPI document, and from its page, what a deployment leaves out.

Both are made for all parts. In the document an operation or a schema of a part says so under OF_PART, and a
schema's values of parts under VALUES_OF_PARTS (rules/parts.py). In the page, comments are around what is of a
part.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from rules.parts import OF_PART, VALUES_OF_PARTS, Part

# What the page has around HTML of a part, whose name the first one tells.
BEGIN, END = "<!--part {}-->", "<!--/part-->"
_FRAMED = re.compile(r"<!--part (\w+)-->(.*?)<!--/part-->", re.DOTALL)


def served_document(document: dict[str, Any], deployed: Collection[Part]) -> dict[str, Any]:
    """Return the OpenAPI document of a deployment with some parts, without any mark."""
    served: dict[str, Any] = _without_parts(document, deployed)
    served["paths"] = {path: methods for path, methods in served["paths"].items() if methods}
    operations = [operation for methods in served["paths"].values() for operation in methods.values()]
    tags = {tag for operation in operations for tag in operation["tags"]}
    served["tags"] = [tag for tag in served["tags"] if tag["name"] in tags]
    return served


def served_page(html: str, deployed: Collection[Part]) -> str:
    """Return the page of the document as a deployment with some parts has it."""
    return _FRAMED.sub(lambda framed: framed[2] if framed[1] in deployed else "", html)


def _without_parts(value: Any, deployed: Collection[Part]) -> Any:
    """Return a value of the document without what is of parts that are not deployed."""
    if isinstance(value, list):
        return [_without_parts(item, deployed) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: _without_parts(inner, deployed)
        for name, inner in value.items()
        if name not in (OF_PART, VALUES_OF_PARTS) and _is_there(inner, deployed)
    }
    if parts_of_values := value.get(VALUES_OF_PARTS):
        lacking = {each for each, part in parts_of_values.items() if part not in deployed}
        kept["enum"] = [each for each in kept["enum"] if each not in lacking]
        if "description" in kept:
            meant = [text for each, text in meanings(value) if each not in lacking]
            kept["description"] = "; ".join(meant)
    return kept


def meanings(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a schema's description says of its values, each with its value, "" for no value.

    Such a description is `taken: it is; left: it is not; nobody knows why`.
    """
    values = "|".join(map(re.escape, schema["enum"]))
    texts = re.split(rf"; (?=(?:{values}): )", schema["description"])
    said = [text.partition(": ")[0] for text in texts]
    return [(each if each in schema["enum"] else "", text) for each, text in zip(said, texts, strict=True)]


def _is_there(value: Any, deployed: Collection[Part]) -> bool:
    return not isinstance(value, dict) or value.get(OF_PART) in (None, *deployed)
