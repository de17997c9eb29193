"""What is uploaded for a function, with its layers, fits into Lambda, and is for the architecture that it says."""

from pathlib import Path

from infra.stacks import TEMPLATE, read_template
from tests.support.effort import SOAK, effort
from tests.support.package_sizes import PLATFORMS, UNZIPPED_BYTES_MAX, faults, foreign, imports, too_large


def some_functions() -> set[str]:
    """One of those that have the same package and layers, and so the same source; in `make soak` all of them.

    The laptop cloud builds all of them with `sam build`.
    """
    declared, alike = read_template(TEMPLATE)["Resources"], dict[tuple[str, ...], str]()
    for name, layers in imports().items():
        package = declared[name]["Properties"]["Handler"].partition(".")[0]
        alike.setdefault((name if SOAK else package, *layers), name)
    return set(alike.values())


# Each installs all packages of all layers anew.
ARCHITECTURES = tuple(PLATFORMS)[: effort(1, soak=len(PLATFORMS))]


def test_every_function_fits_with_its_layers(tmp_path: Path) -> None:
    functions = some_functions()
    assert [
        each for architecture in ARCHITECTURES for each in faults(architecture, tmp_path, functions)
    ] == []
    built = {
        each.parent.name: {folder.name for folder in each.parent.iterdir()} for each in tmp_path.glob("*/*")
    }
    layers = {each for imported in imports().values() for each in imported}
    assert built == {"any": functions, **dict.fromkeys(ARCHITECTURES, layers)}


def test_what_does_not_fit_is_named() -> None:
    sizes = {"Small": 1, "Large": 2, "Layer": UNZIPPED_BYTES_MAX - 1}
    found = list(too_large(sizes, {"Small": ["Layer"], "Large": ["Layer"]}, "arm64"))
    assert found == ["Large has 250 MiB with Layer for arm64; 250 are allowed"]


def test_a_library_of_the_other_architecture_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "x.cpython-313-aarch64-linux-gnu.so").touch()
    assert foreign(tmp_path, "arm64") == []
    assert foreign(tmp_path, "x86_64") == ["x.cpython-313-aarch64-linux-gnu.so"]


def test_a_function_has_the_layers_of_all_and_its_own() -> None:
    assert imports()["PageFunction"] == ["DependenciesLayer"]
    assert "AnalyticsLayer" in imports()["CurateFunction"]
