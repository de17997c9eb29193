"""Reads a template and expands it as CloudFormation does, by the SAM translator. Nothing here calls AWS."""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

from infra.template_text import parse

REGION = "us-east-1"
TRANSFORM = "AWS::Serverless-2016-10-31"
# `sam package` uploads what these name and puts its address in S3 instead.
UPLOADED = ("CodeUri", "ContentUri", "DefinitionUri")
logging.getLogger("samtranslator").setLevel(logging.ERROR)  # it warns of metrics that nobody reads


@lru_cache(maxsize=64)
def _json(path: Path, changed_ns: int) -> str:
    return json.dumps(parse(path.read_text()), default=str)


def read(path: Path) -> dict[str, Any]:
    """Return a template as data that the caller may change: !Ref X is {"Ref": "X"}."""
    loaded: dict[str, Any] = json.loads(_json(path, path.stat().st_mtime_ns))
    return loaded


def expanded(path: Path, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return a template without its transform.

    Raises samtranslator's InvalidDocumentException for what SAM refuses, ValueError for another transform.
    """
    template = read(path)
    transforms = template.get("Transform", [])
    if not transforms:
        return template
    if transforms not in (TRANSFORM, [TRANSFORM]):
        raise ValueError(f"{path.name} has a transform that the lint cannot carry out: {transforms}")
    for resource in template["Resources"].values():
        properties = resource.get("Properties") or {}
        for name in UPLOADED:
            if isinstance(properties.get(name), str):
                properties[name] = {"Bucket": "uploaded", "Key": properties[name]}
    translator = Translator({}, Parser(), boto_session=SimpleNamespace(region_name=REGION))
    result: dict[str, Any] = translator.translate(template, dict(parameters))
    return result
