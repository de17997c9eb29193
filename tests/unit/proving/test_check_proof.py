"""Proofs, and the verifier that shares nothing with who writes them (rule 19)."""

import ast
import copy
import json
import random
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import check_proof
from rules.engagement.proof import chain_of, path_of, proof_of, root_of
from tests.support.ledger_strategies import earn
from tests.unit.proving.test_chains import RICH, journal, links

OTHERS = [sha256(bytes([each])).digest() for each in range(20)]


def proven(seq: int, size: int = 12, place: int = 7) -> dict[str, Any]:
    entries = journal([RICH, *(earn(1, number) for number in range(size))])
    chain = chain_of("ann", links(entries))
    assert chain
    leaves = [*OTHERS[:place], chain.leaf, *OTHERS[place:]]
    path = path_of(leaves, place)
    made = proof_of(entries[seq], chain, entries[-1].seq, path, root_of(leaves))
    told: dict[str, Any] = json.loads(json.dumps(made))
    return told


@given(st.integers(0, 13), st.integers(0, 20))
def test_each_entry_has_a_proof_that_leads_to_the_root(seq: int, place: int) -> None:
    proof = proven(seq, place=place)
    assert check_proof.root_of(proof).hex() == proof["root"]
    assert len(json.dumps(proof)) < 4000


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [each for key in value for each in leaves_of(value[key], (*path, key))]
    if isinstance(value, list):
        return [each for key, inner in enumerate(value) for each in leaves_of(inner, (*path, key))]
    return [path]


def test_whatever_is_changed_in_a_proof_it_proves_nothing(tmp_path: Path) -> None:
    proof, luck = proven(4), random.Random(1)
    del proof["form"]
    root = proof.pop("root")
    file = tmp_path / "proof.json"
    for place in leaves_of(proof):
        changed = copy.deepcopy({**proof, "form": "streakline-proof-1"})
        inside: Any = changed
        for key in place[:-1]:
            inside = inside[key]
        old = inside[place[-1]]
        inside[place[-1]] = old + 1 if isinstance(old, int) else _other(old, luck)
        file.write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=r"leads to|no proof|side|hex|int"):
            check_proof.check(file, root)
    for name in ("after", "path"):
        for at in range(len(proof[name])):
            shorter = {**proof, "form": "streakline-proof-1", name: proof[name][:at] + proof[name][at + 1 :]}
            file.write_text(json.dumps(shorter))
            with pytest.raises(ValueError, match="leads to"):
                check_proof.check(file, root)


def _other(text: str, luck: random.Random) -> str:
    at = luck.randrange(len(text)) if text else 0
    return text[:at] + ("1" if text[at : at + 1] != "1" else "2") + text[at + 1 :]


def test_the_verifier_imports_the_standard_library_alone_and_is_a_page() -> None:
    path = Path(check_proof.__file__)
    text = path.read_text()
    found = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert found <= sys.stdlib_module_names
    assert len(text.splitlines()) < 100


def test_it_runs_alone(tmp_path: Path) -> None:
    proof = proven(3)
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof))
    command = [sys.executable, "-I", check_proof.__file__, str(file)]
    done = subprocess.run([*command, proof["root"]], capture_output=True, text=True, check=False)
    assert (done.returncode, "account_id: ann" in done.stdout, "seq: 3" in done.stdout) == (0, True, True)
    refused = subprocess.run([*command, "00" * 32], capture_output=True, text=True, check=False)
    assert (refused.returncode, "NOT PROVEN" in refused.stderr) == (1, True)


FORGED = "10:account_idt3:bob"


def forged(tmp_path: Path, proof: dict[str, Any]) -> list[str]:
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(proof))
    return check_proof.check(file, proof["root"])


def test_bytes_do_not_move_from_one_field_of_a_proof_into_another(tmp_path: Path) -> None:
    """The digests stay what they are; only the reading of the bytes differs."""
    proof = proven(4)
    _, kind, points, balance, *rest = proof["entry"]["shown"]
    swallowed = ["points", f"i{len(points[2])}:{points[2]}7:balancei", balance[2]]  # the balance as points
    entry = proof["entry"] | {"shown": [proof["entry"]["shown"][0], kind, swallowed, *rest]}
    assert check_proof.root_of(proof).hex() == proof["root"]
    with pytest.raises(ValueError, match="no proof"):
        forged(tmp_path, proof | {"entry": entry})

    first, *others = proof["entry"]["hidden"]
    salt = proof["entry"]["salt"] + f"10:account_idt{len(first[2])}:{first[2]}".encode().hex()
    with pytest.raises(ValueError, match="no proof"):  # nobody's entry
        forged(tmp_path, proof | {"entry": proof["entry"] | {"salt": salt, "hidden": others}})


def test_a_key_of_the_sender_s_own_makes_nobody_else_s_entry(tmp_path: Path) -> None:
    """Whoever sends the key chooses its text, which may look like another field."""
    entries = journal([RICH, replace(earn(1), event_id=f"at#{FORGED}"), earn(1, 2)])
    chain = chain_of("ann", links(entries))
    assert chain
    path = path_of([OTHERS[0], chain.leaf], 1)
    made = proof_of(entries[2], chain, entries[-1].seq, path, root_of([OTHERS[0], chain.leaf]))
    proof = json.loads(json.dumps(made))
    assert "account_id: ann" in forged(tmp_path, proof)
    told = "".join(f"{len(n)}:{n}{k}{len(v)}:{v}" for n, k, v in proof["entry"]["hidden"])
    before, _, after = told.partition(FORGED)
    assert after == ""
    entry = {"salt": proof["entry"]["salt"] + before.encode().hex(), "hidden": [["account_id", "t", "bob"]]}
    with pytest.raises(ValueError, match="no proof"):
        forged(tmp_path, proof | {"entry": proof["entry"] | entry})


@pytest.mark.parametrize("name", ["account", "previous"])
def test_a_digest_has_one_length(tmp_path: Path, name: str) -> None:
    proof = proven(4)
    of = proof if name == "account" else proof["entry"]
    of[name] += "00"
    with pytest.raises(ValueError, match="no proof"):
        forged(tmp_path, proof)


def test_a_value_makes_no_line_of_its_own(tmp_path: Path) -> None:
    entries = journal([RICH, replace(earn(1), reason="thanks\npoints: 9999\u2028points: 9999")])
    chain = chain_of("ann", links(entries))
    assert chain
    path = path_of([OTHERS[0], chain.leaf], 1)
    proof = json.loads(
        json.dumps(proof_of(entries[2], chain, entries[-1].seq, path, root_of([OTHERS[0], chain.leaf])))
    )
    told = "\n".join(forged(tmp_path, proof)).splitlines()
    assert [each for each in told if each.startswith("points")] == ["points: 1"]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "", "[]", "null", '{"form": 1}', "NaN"],
    ids=["deep", "", "list", "null", "form", "NaN"],
)
def test_what_is_no_proof_is_told_so(tmp_path: Path, text: str) -> None:
    file = tmp_path / "proof.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"no proof|Expecting"):
        check_proof.check(file, "00" * 32)


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("entry", "{}"),
        ("root", '"00"'),
        ("s\\u0061lt", '"00"'),
        ("path", "[]"),
        ("form", '"x"'),
        ("x", '1, "x": 2'),
    ],
)
def test_a_proof_that_says_two_things_proves_nothing(tmp_path: Path, key: str, other: str) -> None:
    """Whoever reads the file may read the one, and the verifier the other."""
    proof, name = proven(4), json.loads(f'"{key}"')
    place = '"entry": {' if name == "salt" else "{"
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof).replace(place, f'{place}"{key}": {other}, ', 1))
    with pytest.raises(ValueError, match=f"no proof: .*a key is there twice, of.* {name}"):
        check_proof.check(file, proof["root"])
