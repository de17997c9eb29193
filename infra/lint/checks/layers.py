"""Layers and the functions that import from them: one Python, one architecture, and that is what is built."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.checks.found import Stacks, made, on_aws
from infra.lint.faults import Fault
from infra.lint.resolved import Stack, references
from infra.template_text import ROOT

BUILD = "infra/layer/build"
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "x86_64"}


def built(script: str) -> dict[str, str]:
    """Return what a build script builds for unless somebody says otherwise: Runtime and Architectures."""
    python = re.search(r"\$\{LAYER_PYTHON:-(\d\.\d+)\}", script)
    platform = re.search(r"\$\{LAYER_PLATFORM:-(aarch64|x86_64)", script)
    return {
        **({"Runtime": f"python{python[1]}"} if python else {}),
        **({"Architectures": ARCHITECTURES[platform[1]]} if platform else {}),
    }


def faults(stacks: Stacks, script: str = "") -> Iterator[Fault]:
    """Find layers that are not for what a function runs on. script: what builds the layers, if not ours."""
    always = built(script or (ROOT / BUILD).read_text()) if on_aws(stacks) else {}
    for stack, name, properties in made(stacks, "AWS::Lambda::Function"):
        runs_on = {
            "Runtime": properties.get("Runtime", ""),
            "Architectures": properties.get("Architectures", ["x86_64"])[0],
        }
        for layer, declared in _layers(stack, properties):
            known_as = re.sub("[0-9a-f]{10}$", "", layer)  # SAM adds a digest
            for each, value in runs_on.items():
                if value not in declared.get(f"Compatible{each.removesuffix('s')}s", [value]):
                    yield Fault(stack.path, name, f"it runs on {value}, but its layer {known_as} does not")
                if always.get(each, value) != value:
                    reason = f"functions run on {value}, but {BUILD} builds it for {always[each]}"
                    yield Fault(stack.path, known_as, reason)


def _layers(stack: Stack, properties: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for layer, _ in references(properties.get("Layers", [])):
        if layer in stack.resources:
            yield layer, stack.resources[layer]["Properties"]
