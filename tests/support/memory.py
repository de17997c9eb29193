"""What a process holds in memory. Here one process runs many modules' tests, and must forget in between."""

import sys

from adapters.platform.aws import client
from adapters.platform.fence import process_fence


def forget() -> None:
    """Drop clients, and the parts and settings of each handler that has been imported."""
    client.cache_clear()
    process_fence.cache_clear()
    for name, module in list(sys.modules.items()):
        if name.startswith(("ingest.", "processors.")) and hasattr(module, "_parts"):
            module._parts.cache_clear()
