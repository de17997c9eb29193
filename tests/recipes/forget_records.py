"""Takes out of the records what the code no longer has (docs/recipes/take-a-part-out.md).

Records are refused if they lack what was there, so that nobody removes it unnoticed: resources that hold data,
recorded calls and samples of events of functions, published columns of the lake, types of messages. Run this if it is meant.
"""

import json
from functools import partial
from pathlib import Path

from infra.template_text import parse
from rules.lake.entities import ENTITIES
from rules.outgoing.notices import TYPES
from tests.support.calls import declared
from tests.support.permitted_calls import RESOURCE, faults
from tests.support.template import DEPLOYMENTS, stacks_of

RESOURCES, CALLS = Path("tests/infra/stateful_resources.json"), Path("tests/infra/calls.json")
MESSAGES = Path("docs/webhooks.schema.json")
SAMPLES, LAKE_PAGE, SECTION = Path("tests/events"), Path("sql/lake.md"), "\n## "


def main() -> None:
    """Forget what template.yaml and the lake's declarations lack."""
    there = parse(Path("template.yaml").read_text())["Resources"].keys()
    recorded = json.loads(RESOURCES.read_text())
    recorded["template.yaml"] = {
        name: kind for name, kind in recorded["template.yaml"].items() if name in there
    }
    RESOURCES.write_text(json.dumps(recorded, indent=2) + "\n")
    calls = {name: each for name, each in json.loads(CALLS.read_text()).items() if name in there}
    calls = {name: list(filter(None, map(partial(_known, name), each))) for name, each in calls.items()}
    for deployment in DEPLOYMENTS:
        for fault in [*faults(stacks_of(deployment)["/"], calls)]:
            function, _, call = fault.partition(": its ")[0].partition(" calls ")
            if call in calls[function]:  # of a part, which the role was for
                calls[function].remove(call)
    CALLS.write_text(json.dumps(calls, indent=2) + "\n")
    for sample in SAMPLES.glob("*.json"):
        if sample.stem not in there:
            sample.unlink()
    introduction, *sections = LAKE_PAGE.read_text().split(SECTION)
    kept = [section for section in sections if section.partition("\n")[0] in ENTITIES]
    LAKE_PAGE.write_text(SECTION.join([introduction, *kept]))
    schema = json.loads(MESSAGES.read_text())
    kinds = schema["properties"]["type"]
    gone = {kind for kind in kinds["enum"] if kind not in TYPES}
    kinds["enum"] = [kind for kind in kinds["enum"] if kind not in gone]
    schema["$defs"] = {name: each for name, each in schema["$defs"].items() if name not in gone}
    schema["allOf"] = [
        each for each in schema["allOf"] if each["if"]["properties"]["type"]["const"] not in gone
    ]
    MESSAGES.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


def _known(function: str, call: str) -> str:
    """Return a call without resources that no variable of the function names; "" if none is left."""
    action, _, resources = call.partition(" ")
    known = [
        each
        for each in resources.split("|")
        if (found := RESOURCE.fullmatch(each)) and found["variable"] in {"", *declared(function)}
    ]
    return f"{action} {'|'.join(known)}" if known else ""


if __name__ == "__main__":
    main()
