"""Runs the SAM CLI, on its own Python, for the laptop cloud: with C for YAML, and with light zips.

SAM reads template.yaml and its nested stacks seventeen times, and compresses thousands of files that the
emulator unpacks at once. By itself it builds and compresses 43 functions one by one, though those of one
package are the same files. A deployment to AWS is made by the plain `sam`.
"""

import re
import zlib
from pathlib import Path
from typing import Any

import yaml

LIGHT = 1  # of nine levels: a quarter of the time, and a tenth more bytes
# By package, and by function where it reads further folders: what is built.
BUILDS: dict[tuple[str, str], Any] = {}
READERS = re.findall(r"^READS_(\w+)", (Path(__file__).parents[2] / "Makefile").read_text(), re.MULTILINE)

setattr(yaml, "SafeLoader", yaml.CSafeLoader)  # noqa: B010 (the stubs take it for a type)
setattr(yaml, "SafeDumper", yaml.CSafeDumper)  # noqa: B010 (the same)
setattr(zlib, "Z_DEFAULT_COMPRESSION", LIGHT)  # noqa: B010 (the stubs take it for a constant)


def put_function(put: Any, graph: Any, build: Any, function: Any) -> None:
    """Let a function share the build of another one with the same files. put: SAM's own method."""
    package = (function.handler.partition(".")[0], function.name if function.name in READERS else "")
    if package in BUILDS:
        BUILDS[package].add_function(function)
    else:
        BUILDS[package] = build
        put(graph, build, function)


if __name__ == "__main__":
    # They take the three above as they are imported.
    from samcli.cli.main import cli
    from samcli.lib.build.build_graph import BuildGraph

    put_alone = BuildGraph.put_function_build_definition
    BuildGraph.put_function_build_definition = lambda *build: put_function(put_alone, *build)
    cli(prog_name="sam")
