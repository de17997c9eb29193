"""Exports in the process: what wakes the function that makes them calls its handler at once."""

import io
import json
import zipfile
from typing import Any
from urllib.request import urlopen

import pytest

from adapters.privacy.export_jobs import ExportInvoker
from ingest import privacy_api
from processors import erasure
from tests.support.gateway import CONTEXT


class Functions:
    """Lambda, as far as the API asks it; keeps what it was asked, and calls the handler unless `is_away`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.is_kept_back = False

    def invoke(self, FunctionName: str, InvocationType: str, Payload: str) -> None:  # noqa: N803 (Lambda's names)
        assert (FunctionName, InvocationType) == ("erasure", "Event")
        self.asked.append(json.loads(Payload))
        if not self.is_kept_back:
            erasure.handler(self.asked[-1], CONTEXT)


def made_in_process(patch: pytest.MonkeyPatch) -> Functions:
    """Let exports be made in this process."""
    functions = Functions()
    patch.setattr(privacy_api, "ExportInvoker", lambda _, name: ExportInvoker(lambda: functions, name))
    return functions


def downloaded(told: dict[str, Any]) -> zipfile.ZipFile:
    """What the URL of a finished export leads to."""
    assert told["status"] == "finished", told
    with urlopen(told["url"]) as answer:
        data = answer.read()
    assert len(data) == told["bytes"]
    return zipfile.ZipFile(io.BytesIO(data))
