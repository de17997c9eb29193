"""Slims an installed layer: only the AWS services in use, their models uncompressed, no documentation.

What a cold start reads and unpacks is what it costs (bench/cold_start.py).
"""

import gzip
import shutil
import sys
from pathlib import Path

SERVICES = {"dynamodb", "s3", "sqs", "sts"}
UNUSED = ("bin", "*.dist-info/RECORD", "botocore/data/*/*/examples-1.json*", "jmespath/tests")


def slim(site: Path) -> None:
    """Slim a site-packages folder in place."""
    data = site / "botocore" / "data"
    for service in data.iterdir():
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)
    for packed in data.rglob("*.json.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    for pattern in UNUSED:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
