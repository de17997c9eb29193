"""Writes what `make clients` makes: the OpenAPI document, its page, clients' types, modules of the page.

Types begin with the digest of the document that they were made from, page/elements.js with that of its
sources, page/yaml.js with the version of its package. `make check` compares these alone, which takes no time
and no node. `make test` makes all anew and compares the text. All is committed: a deployment needs no node.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

from infra.api_reference import reference
from ingest.openapi import document
from ingest.web import served_parts
from ingest.web.routes import DOCUMENT, REFERENCE
from rules.parts import ALL_PARTS

ROOT = Path(__file__).parent.parent
TYPESCRIPT_CLIENT = ROOT / "client" / "typescript"
TYPESCRIPT = TYPESCRIPT_CLIENT / "src" / "generated" / "api.ts"
PYTHON = ROOT / "client" / "python" / "streakline_client" / "generated" / "api.py"
GENERATE_SECONDS_MAX = 120
MARK = "Made by `make clients` from the API with the digest "
ELEMENTS_ENTRY = "src/elements/index.ts"
ELEMENTS = ROOT / "page" / "elements.js"
ELEMENTS_MARK = "// Made by `make clients` from client/typescript/src/elements with the digest "
YAML = ROOT / "page" / "yaml.js"
YAML_PACKAGE = "js-yaml"


def digest() -> str:
    """Return the digest of the document as a deployment with all parts serves it, in hexadecimal."""
    return hashlib.sha256(json.dumps(_document_of_all(), sort_keys=True).encode()).hexdigest()


def _document_of_all() -> dict[str, Any]:
    return served_parts.served_document(document(), ALL_PARTS)


def generator_document() -> dict[str, Any]:
    """Return the document as the generators read it.

    Refusals are left out: they have one shape, Error. Objects are open, because a service that is newer than
    the client may answer with further fields.
    """
    opened = deepcopy(_document_of_all())
    for methods in opened["paths"].values():
        for operation in methods.values():
            operation["responses"] = {
                code: response for code, response in operation["responses"].items() if code.startswith("2")
            }
    _open_objects(opened)
    return opened


def _open_objects(schema: Any) -> None:
    """Let all objects within a schema have further fields."""
    if isinstance(schema, dict):
        if schema.get("additionalProperties") is False:
            del schema["additionalProperties"]
        for part in schema.values():
            _open_objects(part)
    elif isinstance(schema, list):
        for part in schema:
            _open_objects(part)


def stored_document() -> str:
    """Return the document's file, which a function serves without the parts that are left out."""
    return json.dumps(document(), indent=1) + "\n"


def reference_page() -> str:
    """Return the page of /v1/docs, which one function serves."""
    return reference(document())


def typescript() -> str:
    """Return the TypeScript types; needs node, and the packages of client/typescript."""
    types = _run(
        [str(TYPESCRIPT_CLIENT / "node_modules" / ".bin" / "openapi-typescript")],
        "--alphabetize",
        "--empty-objects-unknown",
        "-o",
    )
    return f"// {MARK}{digest()}.\n\n" + types.partition("*/\n")[2].lstrip()


def python() -> str:
    """Return the Python types: typed dictionaries, which need no package at run time."""
    options = {
        "--input-file-type": "openapi",
        "--output-model-type": "typing.TypedDict",
        "--naming-strategy": "parent-prefixed",
        "--target-python-version": "3.11",
        "--formatters": "builtin",
    }
    types = _run(
        [sys.executable, "-m", "datamodel_code_generator", "--input"],
        *(word for option in options.items() for word in option),
        *("--openapi-scopes", "schemas", "paths"),
        "--use-operation-id-as-name",
        "--disable-timestamp",
        "--use-double-quotes",
        "--output",
    )
    body = types[types.index("from __future__") :]
    return f'"""{MARK}{digest()}."""\n\n{body}'


def _run(generator: list[str], *options: str) -> str:
    """Run a generator on a file with the document; returns the text that it wrote.

    generator: its command, up to the file. options: those behind the file; the last one names the output.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "openapi.json", Path(folder) / "made"
        source.write_text(json.dumps(generator_document()))
        command = [*generator, str(source), *options, str(target)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=GENERATE_SECONDS_MAX)  # noqa: S603 (our own tools)
        return target.read_text()


def element_sources() -> list[Path]:
    """Return the files that the page's elements are made from."""
    # moment.ts is the only file outside of the elements' folder whose code they import.
    source = TYPESCRIPT_CLIENT / "src"
    return [*sorted((source / "elements").glob("*.ts")), source / "moment.ts"]


def digest_of(files: list[Path]) -> str:
    """Return the digest of files, by name and content, in hexadecimal."""
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(f"{path.name}\0{path.read_text()}\0".encode())
    return hashed.hexdigest()


def elements() -> str:
    """Return the clients' elements as one module; needs node, and the packages of client/typescript."""
    return f"{ELEMENTS_MARK}{digest_of(element_sources())}.\n{_bundled(ELEMENTS_ENTRY)}"


def yaml() -> str:
    """Return a reader of YAML as a module, below its licence; needs node and client/typescript's packages."""
    package = TYPESCRIPT_CLIENT / "node_modules" / YAML_PACKAGE
    version = json.loads((package / "package.json").read_text())["version"]
    licence = (package / "LICENSE").read_text().strip()
    code = _bundled("--legal-comments=none", source=f'export {{ CORE_SCHEMA, load }} from "{YAML_PACKAGE}";')
    return f"/* {YAML_PACKAGE} {version}\n\n{licence}\n*/\n{code}"


def _bundled(*arguments: str, source: str | None = None) -> str:
    """Return a module with all that it imports. arguments: of esbuild; its entry, if no source is given."""
    options = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--charset=utf8")
    command = [str(TYPESCRIPT_CLIENT / "node_modules" / ".bin" / "esbuild"), *arguments, *options]
    return subprocess.run(  # noqa: S603 (our own tool)
        command,
        cwd=TYPESCRIPT_CLIENT,
        input=source,
        check=True,
        capture_output=True,
        text=True,
        timeout=GENERATE_SECONDS_MAX,
    ).stdout


if __name__ == "__main__":
    makers = {
        DOCUMENT: stored_document,
        REFERENCE: reference_page,
        TYPESCRIPT: typescript,
        PYTHON: python,
        ELEMENTS: elements,
        YAML: yaml,
    }
    # --document: without the clients, whose types need node
    paths = (DOCUMENT, REFERENCE) if "--document" in sys.argv else makers
    for path, make in ((path, makers[path]) for path in paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make())
