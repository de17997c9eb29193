"""Leads that organizations shared are divided: each keeps what it brought, and nothing of the others'."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from adapters.postgresql.migrations import FOLDER
from rules.leads.identity.identities import Identity
from tests.support.identity_events import check
from tests.support.identity_server import NOW, WAYS, Server
from tests.support.rds_data_api import OWNER_SECRET, RdsDataApi
from tests.support.shared_leads import Old

pytestmark = pytest.mark.xdist_group("identity")


@pytest.fixture
def old(identity_server: Server, tmp_path: Path) -> Old:
    return Old(identity_server, tmp_path / "before")


def test_an_organization_s_own_leads_stay_as_they_are(old: Old) -> None:
    first = old.see("acme", "customer:acme/shop/1", "email:a@x")
    second = old.see("acme", "phone:4915100000001", "device:acme/shop/d")
    number = old.merge("acme", 1, 2)
    old.one('SELECT identity.unmerge(%s, \'{"reason": "r", "by": "b"}\', now())', number)
    history = "SELECT number, kind, ARRAY(SELECT unnest(leads) ORDER BY 1), via, evidence, announcement, at, reversed_by FROM identity.identity_change ORDER BY 1"
    moves = "SELECT number, lead_id, root_before, root_after FROM identity.change_lead ORDER BY 1, 2"
    apart = "SELECT number, lead_id, is_moved FROM identity.kept_apart ORDER BY 1, 2"
    queries = ("SELECT lead_id, root_id, created_at FROM identity.lead ORDER BY 1", history, moves, apart)
    before = [old.rows(each) for each in queries]
    registry = old.divided()
    assert [old.rows(each) for each in queries] == before
    assert registry.see(Identity("email", "a@x")).leaf == first
    assert registry.see(Identity("phone", "4915100000001")).leaf == second
    both = registry.see(Identity("email", "a@x"), Identity("phone", "4915100000001"))
    assert both.root_id == first
    assert registry.see(Identity("phone", "4915100000001")).root_id == second, "parted before, and still"
    check(registry)
    registry.close()


def test_each_organization_keeps_what_it_brought(old: Old) -> None:
    acme = old.see("acme", "email:a@x", "phone:4915100000001")
    other = old.see("other", "email:a@x")
    third = old.see("third", "email:b@x")
    fourth = old.see("fourth", "email:b@x")
    registry = old.divided()
    phone = Identity("phone", "4915100000001")
    assert registry.see(Identity("email", "a@x")).leaf == registry.see(phone).leaf == acme
    # Nobody knows by which of acme's two it came to know them, so it gets neither.
    assert registry.see(Identity("email", "a@x"), organization="other").leaf != other
    assert registry.see(phone, organization="other").leaf not in {other, acme}
    # By the only one there was it must have come.
    assert registry.see(Identity("email", "b@x"), organization="third").leaf == third
    assert registry.see(Identity("email", "b@x"), organization="fourth").leaf == fourth
    registry.close()


def test_what_came_with_an_organization_s_first_event_of_a_lead_is_its_own(old: Old) -> None:
    old.see("acme", "email:a@x")
    leaf = old.plan("other", lead=1, attach=[["phone", "4915100000002"], ["customer", "other/shop/7"]])[
        "leaf"
    ]
    registry = old.divided()
    for each in (Identity("phone", "4915100000002"), Identity("customer", "other/shop/7")):
        assert registry.see(each, organization="other").leaf == leaf
    assert registry.see(Identity("phone", "4915100000002")).lead_id not in {1, 2}
    registry.close()


def test_groups_and_changes_of_several_organizations_are_divided(old: Old) -> None:
    for organization in ("acme", "other"):
        for each in ("email:a@x", "email:b@x", "email:c@x"):
            old.see(organization, each)
    old.see("third", "email:c@x")
    first, second = old.merge("acme", 1, 2), old.merge("other", 1, 3)
    before = old.topology()
    registry = old.divided()
    assert old.topology() == before
    changes = old.rows(
        "SELECT number, organization_id, announcement FROM identity.identity_change ORDER BY 1, 2"
    )
    assert [each[:2] for each in changes] == [
        *((first, "acme"), (first, "other"), (second, "acme"), (second, "other"))
    ]
    assert all(set(told) == {organization} for _, organization, told in changes)
    foreign = "SELECT count(*) FROM identity.identity_change WHERE evidence->>'source' NOT LIKE organization_id || '/%'"
    assert old.rows(foreign) == [(0,)]
    check(registry)
    registry.store.unmerge("acme", second, "r", "b", NOW)
    registry.store.unmerge("other", second, "r", "b", NOW)
    registry.store.unmerge("other", first, "r", "b", NOW)
    emails = [Identity("email", f"{name}@x") for name in "abc"]
    roots = [[registry.see(each, organization=name).root_id for each in emails] for name in ("acme", "other")]
    assert [len(set(each)) for each in roots] == [2, 3]
    assert roots[0][0] == roots[0][1]
    check(registry)
    registry.close()


def test_an_interrupted_division_goes_on_where_it_stopped(
    old: Old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves = {number: old.see("acme", f"email:{number}@x") for number in range(40)}
    old.see("other", "email:7@x")
    folder = tmp_path / "small"
    shutil.copytree(FOLDER, folder)
    steps = folder / "0010_divide.repeat.sql"
    steps.write_text(steps.read_text().replace("2000", "10"))
    done = 0

    def stop(*_: Any) -> Any:
        nonlocal done
        done += 1
        if done == 4:
            raise TimeoutError
        return real(*_)

    from adapters.postgresql import migrations

    real = migrations._applied
    with monkeypatch.context() as patch, pytest.raises(TimeoutError):
        patch.setattr(migrations, "_applied", stop)
        old.migrate(folder)
    left = "SELECT count(*) FROM identity.lead WHERE organization_id IS NULL"
    assert 0 < old.one(left) < 40
    old.see("acme", "email:late@x")  # by code of before, meanwhile
    old.see("third", "email:7@x")
    assert old.migrate(folder)[0] == "0010_divide.repeat.sql"
    registry = old.registry()
    for number, leaf in leaves.items():
        assert registry.see(Identity("email", f"{number}@x")).leaf == leaf
    check(registry)
    registry.close()


@pytest.mark.parametrize("way", WAYS)
def test_both_ways_divide_alike(old: Old, way: str, request: pytest.FixtureRequest) -> None:
    for organization in ("acme", "other"):
        old.see(organization, "email:a@x")
        old.see(organization, "email:b@x")
    old.merge("acme", 1, 2)
    url = old.url
    if way == "data_api":
        api: RdsDataApi = request.getfixturevalue("data_api")
        url = api.url(old.name, OWNER_SECRET)
    before = old.topology()
    old.migrate(url=url)
    assert old.topology() == before
    assert len(before) == 4
