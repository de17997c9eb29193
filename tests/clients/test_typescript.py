"""The TypeScript client: its own tests, its size, and its types in an app."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from infra import client_types
from tests.support.node_tools import CLIENT, built, must, packages

pytestmark = pytest.mark.xdist_group("clients")
BUNDLE_BYTES_MAX = 12_700  # with freezes, repairs, pauses, rest days, settings, achievements, answers at once
ELEMENTS_BYTES_MAX = 9_000
# Somebody who is offline: what happens is kept, and shown at once.
NODE_APP = """
import { Streakline } from 'streakline';
import { inFolder } from 'streakline/node';

const me = new Streakline({ url: 'http://127.0.0.1:9', user: 'ann', token: 'token', platform: inFolder('kept') });
await me.track('LESSON_COMPLETED', { minutes: 12 });
console.log((await me.estimate()).current_streak, (await me.waiting()).length);
process.exit(0);
"""


def test_its_own_tests_pass() -> None:
    files = sorted((built() / "test").glob("*.test.js"))
    told = must("node", "--test", *map(str, files))
    passed, failed = (int(told.partition(f"# {name} ")[2].split()[0]) for name in ("pass", "fail"))
    assert passed > 40, told
    assert failed == 0


def test_it_is_small() -> None:
    bundled = must(
        str(packages() / "esbuild"),
        *("src/index.ts", "--bundle", "--minify", "--format=esm", "--target=es2022"),
    )
    size = len(gzip.compress(bundled.encode(), 9))
    print(f"\nclient/typescript: {size:,} bytes compressed, {len(bundled.encode()):,} minified")
    assert 4_000 < size <= BUNDLE_BYTES_MAX


def test_the_elements_are_small() -> None:
    text = client_types.ELEMENTS.read_bytes()
    size = len(gzip.compress(text, 9))
    print(f"\nclient/typescript, elements: {size:,} bytes compressed, {len(text):,} minified")
    assert 4_000 < size <= ELEMENTS_BYTES_MAX
    assert b"/v1/" not in text, "the elements have none of the client"


def test_an_app_compiles_in_strict_mode_and_its_mistakes_do_not() -> None:
    assert (built() / "sample" / "app.js").exists()
    # The compiler fails where a line that is marked as a mistake is none.
    assert (CLIENT / "sample" / "app.ts").read_text().count("// @ts-expect-error") == 5
    assert json.loads((CLIENT / "tsconfig.json").read_text())["compilerOptions"]["strict"] is True


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What npm says of the built package, and its archive."""
    must("npm", "run", "build")
    folder = tmp_path_factory.mktemp("packed")
    told = json.loads(must("npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(folder)))[0]
    return told, folder / told["filename"]


def test_it_is_a_package_without_dependencies(packed: tuple[dict[str, Any], Path]) -> None:
    names = {each["path"] for each in packed[0]["files"]}
    assert {"package.json", "README.md", "dist/index.js", "dist/index.d.ts", "dist/node/index.js"} <= names
    assert {"dist/elements/index.js", "dist/elements/index.d.ts"} <= names
    assert not [name for name in names if name.startswith(("src", "test", "build", "sample"))]
    declared = json.loads((CLIENT / "package.json").read_text())
    assert not declared.keys() & {"dependencies", "peerDependencies", "optionalDependencies"}


def test_an_app_compiles_against_the_packed_package(
    packed: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    """As an app's own compiler sees it: what is in the archive, no types of Node, libraries checked too.

    Its lines that are marked as mistakes show that the package's types are looked at.
    """
    (app := tmp_path / "app").joinpath("node_modules").mkdir(parents=True)
    must("tar", "-xzf", str(packed[1]), "-C", str(app / "node_modules"))
    (app / "node_modules" / "package").rename(app / "node_modules" / "streakline")
    (app / "app.ts").write_text((CLIENT / "sample" / "app.ts").read_text())
    (app / "package.json").write_text('{"type": "module"}')
    strict = {"strict": True, "exactOptionalPropertyTypes": True, "noEmit": True, "skipLibCheck": False}
    browser = {"target": "ES2022", "lib": ["ES2022", "DOM"], "types": []}
    modules = {"module": "NodeNext", "moduleResolution": "NodeNext"}
    (app / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**strict, **browser, **modules}}))
    must(str(packages() / "tsc"), "-p", str(app))


def test_the_packed_package_works_alone(packed: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    told = must("npm", "install", "--offline", "--no-audit", "--no-fund", str(packed[1]), folder=tmp_path)
    assert "warn" not in told
    (tmp_path / "app.js").write_text(NODE_APP)
    assert must("node", "app.js", folder=tmp_path) == "1 1\n"
