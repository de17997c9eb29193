"""A slimmed layer's botocore makes the clients that the installed one makes, and loads nothing for help()."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from infra.layer.slim import DOCSTRINGS, SERVICES, slim
from tests.support.effort import effort

INSTALLED = Path(botocore.session.__file__).parents[1]
# Prints, by service, a client's methods, waiters and whether its lists have pages; and what was loaded for it.
CHILD = """
import json, sys
sys.path[:0] = [{site!r}]
import botocore.session
session, told = botocore.session.get_session(), {{}}
for service in {services!r}:
    made = session.create_client(service, "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    names = sorted(made.meta.method_to_api_mapping)
    pages = {{name: type(made.get_paginator(name)).__name__ for name in names if made.can_paginate(name)}}
    waits = {{name: type(made.get_waiter(name)).__name__ for name in made.waiter_names}}
    told[service] = [names, pages, waits]
print(json.dumps([told, botocore.__file__, sorted(each for each in sys.modules if each.startswith("botocore.docs"))]))
"""


def clients_of(site: Path) -> tuple[dict[str, Any], str, list[str]]:
    child = CHILD.format(site=str(site), services=sorted(SERVICES)[:: effort(4, soak=1)])
    done = subprocess.run([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True, check=True)
    told, origin, documentation = json.loads(done.stdout)
    return told, origin, documentation


@pytest.fixture(scope="module")
def slimmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(INSTALLED / "botocore", site / "botocore", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "aws_lambda_powertools" / "utilities").mkdir(parents=True)
    slim(site)
    return site


def test_slim_clients_do_what_the_installed_ones_do(slimmed: Path) -> None:
    told, origin, documentation = clients_of(slimmed)
    assert origin.startswith(str(slimmed))
    assert documentation == ["botocore.docs", "botocore.docs.docstring", "botocore.docs.utils"]
    assert told == clients_of(INSTALLED)[0]


def test_a_method_has_an_empty_docstring_and_no_other_name_is_left_out(slimmed: Path) -> None:
    code = (slimmed / "botocore" / "docs" / "docstring.py").read_text()
    made: dict[str, Any] = {}
    exec(code, made)
    assert [str(made[name]("list_tables", operation_model=None)) for name in DOCSTRINGS] == ["", "", ""]
    sources = [(INSTALLED / "botocore" / name).read_text() for name in ("client.py", "waiter.py")]
    assert set(re.findall(r"\b\w+Docstring\b", "".join(sources))) == set(DOCSTRINGS)
