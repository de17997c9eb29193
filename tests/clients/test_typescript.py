"""The TypeScript client: its own tests, its size, and its types in an app."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from infra import client_types
from tests.support.documents import blocks, documents
from tests.support.node_tools import CLIENT, built, must, packages, packages_of

pytestmark = pytest.mark.xdist_group("clients")
BUNDLE_BYTES_MAX = 12_900  # with freezes, repairs, pauses, rest days, settings, achievements, answers at once, views, friends
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
    assert not declared.keys() & {"dependencies", "optionalDependencies"}
    # Who uses `streakline/react` has React; nobody else gets it, or hears of it.
    assert declared["peerDependencies"] == {"react": ">=18"}
    assert declared["peerDependenciesMeta"] == {"react": {"optional": True}}
    assert {"dist/react/index.js", "dist/react/index.d.ts"} <= names
    assert (CLIENT / "dist" / "react" / "index.js").read_text().startswith("'use client';"), (
        "for React's servers"
    )
    importing = {
        each.parent.name for each in (CLIENT / "dist").rglob("*.js") if "from 'react" in each.read_text()
    }
    assert importing == {"react"}


def test_an_app_compiles_against_the_packed_package(
    packed: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    """As an app's own compiler sees it: what is in the archive, no types of Node, libraries checked too.

    Its lines that are marked as mistakes show that the package's types are looked at.
    """
    app = with_package(packed[1], tmp_path / "app")
    (app / "app.ts").write_text((CLIENT / "sample" / "app.ts").read_text())
    (app / "package.json").write_text('{"type": "module"}')
    strict = {"strict": True, "exactOptionalPropertyTypes": True, "noEmit": True, "skipLibCheck": False}
    browser = {"target": "ES2022", "lib": ["ES2022", "DOM"], "types": []}
    modules = {"module": "NodeNext", "moduleResolution": "NodeNext"}
    (app / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**strict, **browser, **modules}}))
    must(str(packages() / "tsc"), "-p", str(app))


def with_package(archive: Path, app: Path, modules: Path | None = None) -> Path:
    """An app's folder with the packed package, and with other packages that are there already."""
    (app / "node_modules").mkdir(parents=True)
    must("tar", "-xzf", str(archive), "-C", str(app / "node_modules"))
    (app / "node_modules" / "package").rename(app / "node_modules" / "streakline")
    for each in modules.iterdir() if modules else ():
        if each.name != "streakline":
            (app / "node_modules" / each.name).symlink_to(each)
    return app


def test_an_app_with_react_compiles_and_is_bundled_with_the_packed_package(
    packed: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    """tests/browser/test_react.py uses the same app in Chromium."""
    app = with_package(packed[1], tmp_path / "app", packages().parent)
    for each in (CLIENT / "sample" / "react").iterdir():
        (app / each.name).write_text(each.read_text())
    (app / "package.json").write_text('{"type": "module"}')
    strict = {"strict": True, "exactOptionalPropertyTypes": True, "noEmit": True, "skipLibCheck": False}
    browser = {"target": "ES2022", "lib": ["ES2022", "DOM", "DOM.Iterable"], "types": [], "jsx": "react-jsx"}
    modules = {"module": "ESNext", "moduleResolution": "Bundler"}
    (app / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**strict, **browser, **modules}}))
    must(str(packages() / "tsc"), "-p", str(app))
    for entry, *more in (("browser.tsx",), ("server.tsx", "--platform=node")):
        bundled = must(str(packages() / "esbuild"), entry, "--bundle", "--format=esm", *more, folder=app)
        assert "there is no <StreaklineProvider> above" in bundled


def test_react_that_documents_show_compiles(packed: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    """Against React Native's packages, which have React's, too."""
    app = with_package(packed[1], tmp_path / "app", packages_of(CLIENT / "sample" / "react-native"))
    shown = [each for document in documents() for each in blocks(document) if each.language == "tsx"]
    assert shown
    for each in shown:
        (app / f"{each.document.replace('/', '-')}-{each.line}.tsx").write_text(each.text)
    options = {"strict": True, "noEmit": True, "skipLibCheck": True, "jsx": "react-jsx", "types": []}
    modules = {
        "module": "ESNext",
        "moduleResolution": "Bundler",
        "target": "ES2022",
        "lib": ["ES2022", "DOM"],
    }
    (app / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**options, **modules}}))
    must(str(packages() / "tsc"), "-p", str(app))


def test_a_react_native_app_compiles_against_the_packed_package(
    packed: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    """Against the types of React Native itself, of AsyncStorage and of NetInfo; its lines marked as mistakes are some."""
    sample = CLIENT / "sample" / "react-native"
    app = with_package(packed[1], tmp_path / "app", packages_of(sample))
    for each in sample.iterdir():
        (app / each.name).write_text(each.read_text())
    must(str(packages() / "tsc"), "-p", str(app))
    assert (sample / "App.tsx").read_text().count("// @ts-expect-error") == 4


def test_the_packed_package_works_alone(packed: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    told = must("npm", "install", "--offline", "--no-audit", "--no-fund", str(packed[1]), folder=tmp_path)
    assert "warn" not in told
    (tmp_path / "app.js").write_text(NODE_APP)
    assert must("node", "app.js", folder=tmp_path) == "1 1\n"
