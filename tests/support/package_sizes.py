"""Builds what is uploaded for both architectures, and compares it with Lambda's limit.

`python -m tests.support.package_sizes` installs every package of every layer twice, so it takes a minute and is no
part of the gate. It builds for the Python that runs it: only that one can compile, and compiled files count too.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from infra.intrinsics import references
from infra.stacks import TEMPLATE, read_template
from infra.template_text import ROOT

UNZIPPED_BYTES_MAX = 262_144_000  # of a function with all its layers
PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
LIBRARIES = {"arm64": "aarch64-linux", "x86_64": "x86_64-linux"}  # part of the names of compiled modules
MIB = 1 << 20


def imports(template: Path = TEMPLATE) -> dict[str, list[str]]:
    """Return the layers of each function."""
    loaded = read_template(template)
    shared = loaded.get("Globals", {}).get("Function", {}).get("Layers", [])
    return {
        name: [layer for layer, _ in references([shared, each["Properties"].get("Layers", [])])]
        for name, each in loaded["Resources"].items()
        if each["Type"] == "AWS::Serverless::Function"
    }


def build(name: str, architecture: str, folder: Path) -> None:
    """Build a function or a layer into a folder, as `sam build` does; raises CalledProcessError."""
    folder.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    # The list of RDS's authorities (0.2 MB) is fetched from AWS, which this must not need.
    environment |= {
        "LAYER_PLATFORM": PLATFORMS[architecture],
        "LAYER_PYTHON": python,
        "LAYER_COMPILED": str(ROOT / ".local" / "compiled"),
        "LAYER_RDS_BUNDLE": "none",
    }
    command = ["make", "--silent", f"build-{name}", f"ARTIFACTS_DIR={folder}"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def measured(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def foreign(folder: Path, architecture: str) -> list[str]:
    """Return the compiled modules below a folder that are for another architecture."""
    others = [each for name, each in LIBRARIES.items() if name != architecture]
    return sorted(each.name for other in others for each in folder.rglob(f"*{other}*.so"))


def too_large(
    sizes: Mapping[str, int], layers: Mapping[str, Sequence[str]], architecture: str
) -> Iterator[str]:
    """Give a sentence for each function that is too large with its layers. sizes: bytes of all of these."""
    for function, imported in layers.items():
        size = sizes[function] + sum(sizes[each] for each in imported)
        if size > UNZIPPED_BYTES_MAX:
            yield (
                f"{function} has {size / MIB:.0f} MiB with {', '.join(imported)} for {architecture}; "
                f"{UNZIPPED_BYTES_MAX // MIB} are allowed"
            )


def faults(architecture: str, into: Path, functions: Collection[str] | None = None) -> Iterator[str]:
    """Build functions and their layers for an architecture, print sizes, and give what is wrong with them.

    A function is our own source, the same for all architectures: it is built once into the same folder.
    functions: only these; None: all.
    """
    layers = {name: each for name, each in imports().items() if functions is None or name in functions}
    sizes: dict[str, int] = {}
    for name in [*sorted({each for imported in layers.values() for each in imported}), *layers]:
        folder = into / ("any" if name in layers else architecture) / name
        if not folder.exists():
            build(name, architecture, folder)
        sizes[name] = measured(folder)
        for library in foreign(folder, architecture)[:1]:
            yield f"{name} is built for {architecture}, but has {library}"
    yield from too_large(sizes, layers, architecture)
    for function, imported in layers.items():
        total = sizes[function] + sum(sizes[each] for each in imported)
        print(f"{architecture:7} {function:24} {total / MIB:6.1f} MiB")


def main() -> None:
    """Print the size of each function with its layers, then what is wrong; exit with 1 if something is."""
    with tempfile.TemporaryDirectory() as into:
        found = [each for architecture in PLATFORMS for each in faults(architecture, Path(into))]
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main()
