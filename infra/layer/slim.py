"""Slims an installed layer: keeps only the AWS services in use, unpacks their models, drops documentation.

A cold start takes longer the more it reads and unpacks (bench/cold_start.py). A function with its
layers may hold 250 MiB at most. The code that stays is not changed, but for botocore's docstrings.
"""

import gzip
import json
import shutil
import sys
from pathlib import Path
from typing import Any

SERVICES = {
    *("dynamodb", "events", "firehose", "glue", "lambda", "rds-data", "redshift-data", "redshift-serverless"),
    *("s3", "secretsmanager", "sns", "sqs", "sts"),
}
POWERTOOLS_IN_USE = {"data_classes", "typing", "jmespath_utils", "lambda_context"}
SOURCES = ("a", "h", "hpp", "pxd", "pxi", "pyi", "pyx")
# Clients describe their methods to who calls help(). That takes an HTML parser and twenty modules.
DOCSTRINGS = ("ClientMethodDocstring", "PaginatorDocstring", "WaiterDocstring")
NO_DOCSTRING = '''
class {name}(str):
    """Stands for a text that nobody reads in a function."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)
'''
UNUSED = (
    "bin",
    "*.dist-info/RECORD",
    "duckdb/experimental",
    "botocore/data/*/*/examples-1.json*",
    "jmespath/tests",
    # The parts of Arrow that have nothing to do with Parquet.
    "pyarrow/include",
    "pyarrow/src",
    "pyarrow/tests",
    "pyarrow/*flight*",
    "pyarrow/_substrait*",
    "pyarrow/libarrow_python*.so",
    "pyarrow/libarrow_python*.so.*.*",
    "pyarrow/*_cpp_tests*",
    *(f"pyarrow/_{store}fs.*" for store in ("azure", "gcs", "hd", "s3")),
    # The models' descriptions are small, and read by PyYAML without its C library.
    "yaml/_yaml.*.so",
    "numpy/**/tests",
    "numpy/distutils",
    "numpy/f2py",
    # Files that only a compiler or a type checker reads.
    *(f"{package}/**/*.{kind}" for package in ("numpy", "pyarrow") for kind in SOURCES),
)


def slim(site: Path) -> None:
    """Slim a site-packages folder in place. It need not have all of these packages."""
    for pattern in UNUSED:
        for path in list(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if (site / "botocore").exists():
        _slim_aws(site, site / "botocore" / "data")


def _slim_aws(site: Path, data: Path) -> None:
    for service in data.iterdir():
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    for packed in data.rglob("*.json.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    for utility in (site / "aws_lambda_powertools" / "utilities").iterdir():
        if utility.is_dir() and utility.name not in POWERTOOLS_IN_USE:
            shutil.rmtree(utility)
    _drop_docstrings(site / "botocore" / "docs")
    _rewrite(data / "endpoints.json", _in_use)
    for model in data.glob("*/*/*.json"):
        _rewrite(model, _strip_documentation)


def _drop_docstrings(docs: Path) -> None:
    """Leave of botocore's documentation what clients import: three classes, and what handlers need."""
    for path in list(docs.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "utils.py":
            path.unlink()
    (docs / "__init__.py").touch()
    (docs / "docstring.py").write_text("\n".join(NO_DOCSTRING.format(name=name) for name in DOCSTRINGS))


def _rewrite(path: Path, change: Any) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text())), separators=(",", ":")))


def _in_use(endpoints: dict[str, Any]) -> dict[str, Any]:
    """Drop the services that are not in use; keep every partition and region."""
    for partition in endpoints["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in sorted(SERVICES & services.keys())}
    return endpoints


def _strip_documentation(model: Any) -> Any:
    """Replace every documentation text by "". Its key stays, because botocore reads it from some models.

    A value that is no text stays too: a shape may have a member with the name `documentation`.
    """
    if isinstance(model, list):
        return [_strip_documentation(each) for each in model]
    if not isinstance(model, dict):
        return model
    return {
        name: "" if name == "documentation" and isinstance(value, str) else _strip_documentation(value)
        for name, value in model.items()
    }


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
