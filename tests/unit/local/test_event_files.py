"""CSV files as spreadsheets write them are replayed; what is wrong is told by place and column."""

import re
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from local import event_sources
from local.event_sources import BadRow, from_csv, from_git, from_purchases, purchases
from local.replay import SOURCES
from local.verify import local_date

EVENTS = 'user_id,occurred_at,idempotency_key,properties\nj\u00fcrgen,2026-06-01T12:00:00Z,k1,"{""a"": 1}"\n'
PURCHASES = "customer_id,date,quantity,amount\nk\u00e4the,20260301,2,11.77\n"
MARKED = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    path.write_bytes((mark + text).encode(encoding))
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", MARKED)
def test_a_file_is_read_with_a_byte_order_mark_and_without(tmp_path: Path, encoding: str, ends: str) -> None:
    path = written(tmp_path / "a.csv", EVENTS.replace("\n", ends), encoding)
    (event,) = from_csv(path)
    assert (event["user_id"], event["properties"]) == ("j\u00fcrgen", {"a": 1})
    path = written(tmp_path / "b.csv", PURCHASES.replace("\n", ends), encoding)
    (purchase,) = purchases(path)
    assert (purchase.customer, purchase.quantity, purchase.amount) == ("k\u00e4the", 2, Decimal("11.77"))
    (event,) = from_purchases(path)
    assert event["user_id"] == "customer-k\u00e4the"


def test_the_mark_hides_no_column_from_the_command(tmp_path: Path) -> None:
    path = written(tmp_path / "b.csv", PURCHASES, "utf-8-sig")
    assert len(list(SOURCES["purchases"](path))) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the header lacks user_id, occurred_at, idempotency_key: it has nothing"),
        (
            "user,occurred_at,idempotency_key\n",
            "the header lacks user_id: it has user, occurred_at, idempotency_key",
        ),
        (
            "user_id;occurred_at;idempotency_key\n",
            "a.csv: this has columns that are parted by semicolons",
        ),
        ("user_id,occurred_at,idempotency_key\nu,,k\n", ":2: occurred_at is empty"),
        (
            "user_id,occurred_at,idempotency_key,properties\nu,t,k,{\n",
            ":2: properties is not JSON: expecting property name",
        ),
        ("user_id,occurred_at,idempotency_key\nu,t,k,x\n", ":2: line has more cells than the header"),
        ("user_id,occurred_at,idempotency_key,source\nu,t,k\n", ":2: line has fewer cells than the header"),
        ("user_id,occurred_at,idempotency_key,user_id\nu,t,k,v\n", "column 4 is there twice: user_id"),
        ('user_id,occurred_at,idempotency_key\n"u,t,k\n', ":2: unexpected end of data"),
    ],
    ids=range(9),
)
def test_what_is_wrong_with_events_is_told_by_place_and_column(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(BadRow, match=re.escape(reason)) as bad:
        list(from_csv(written(tmp_path / "a.csv", text)))
    assert "a.csv" in str(bad.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "customer,date,quantity,amount\nc,20260301,1,1\n",
            "the header lacks customer_id: it has customer, date",
        ),
        ("customer_id,date,amount\nc,20260301,1\n", "the header lacks quantity"),
        ("customer_id,date,quantity,amount\n,20260301,1,1\n", ":2: customer_id is empty"),
        (
            "customer_id,date,quantity,amount\nc,2026-03-01,1,1\n",
            ":2: date is not a date as YYYYMMDD: 2026-03-01",
        ),
        ("customer_id,date,quantity,amount\nc,20260301,one,1\n", ":2: quantity is not a whole number: one"),
        ("customer_id,date,quantity,amount\nc,20260301,1,$5\n", ":2: amount is not a decimal number: $5"),
        ("customer_id,date,quantity,amount\nc,20260301,1,\n", ":2: amount is empty"),
        ("customer_id,date,quantity,amount\nc,20260301,1\n", ":2: line has fewer cells than the header"),
        ("customer_id,date,quantity,amount\nc,20260301,1,11,77\n", ":2: line has more cells than the header"),
    ],
    ids=range(9),
)
def test_what_is_wrong_with_purchases_is_told_by_place_and_column(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(BadRow, match=re.escape(reason)):
        list(purchases(written(tmp_path / "a.csv", text)))


def test_bytes_of_another_encoding_are_told_by_place_and_column(tmp_path: Path) -> None:
    for text, read, column in ((EVENTS, from_csv, "user_id"), (PURCHASES, purchases, "customer_id")):
        path = written(tmp_path / "a.csv", text, "latin-1")
        with pytest.raises(BadRow, match=f":2: {column} is no Unicode"):
            list(read(path))


def test_a_value_that_json_could_not_hold_is_left_to_the_door_which_refuses_it_alone(tmp_path: Path) -> None:
    row = 'u,2026-06-01T12:00:00Z,k2,"{""a"": ""\\ud83d""}"\n'
    first, second = from_csv(written(tmp_path / "a.csv", EVENTS + row))
    assert (first["properties"], second["properties"]) == ({"a": 1}, {"a": "\ud83d"})


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("", 1),
        ("GMT-3", 31),
        ("-03:00", 31),
        ("right/America/Sao_Paulo", 31),
        ("asia/tokyo", 1),
        ("SystemV/PST8", 31),
        ("PST", 1),
        ("W. Europe Standard Time", 1),
    ],
)
def test_the_independent_calculation_knows_a_zone_as_devices_spell_it(zone: str, day: int) -> None:
    body = {"occurred_at": "2026-06-01T01:00:00Z"} | ({"timezone": zone} if zone else {})
    assert local_date(body).day == day


@pytest.mark.parametrize(
    ("day", "quantity", "amount", "column"),
    [
        ("202631", "1", "5", "date"),
        ("\uff12\uff10260301", "1", "5", "date"),
        ("20260230", "1", "5", "date"),
        ("20260301", "0x1F", "5", "quantity"),
        ("20260301", "1e3", "5", "quantity"),
        ("20260301", "1_0", "5", "quantity"),
        ("20260301", "\u0662", "5", "quantity"),
        ("20260301", "2.0", "5", "quantity"),
        ("20260301", "1", "1_000", "amount"),
        ("20260301", "1", "1E+6", "amount"),
        ("20260301", "1", "5%", "amount"),
        ("20260301", "1", "NaN", "amount"),
        ("20260301", "1", "-Infinity", "amount"),
        ("20260301", "1", "sNaN", "amount"),
        ("20260301", "1", '"11,77"', "amount"),
    ],
)
def test_a_purchase_with_no_number_or_no_date_is_told_by_its_column(
    day: str, quantity: str, amount: str, column: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.csv", f"customer_id,date,quantity,amount\nc,{day},{quantity},{amount}\n")
    with pytest.raises(BadRow, match=f":2: {column} is not a "):
        list(purchases(path))


def test_an_author_s_address_may_have_any_character_that_git_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sources, "LOCAL", tmp_path)
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("plain@x", "tab\tin@x", "line\u2028in@x", "\x1cfield@x"):
        author = ["-c", f"user.email={name}", "-c", "user.name=a"]
        subprocess.run([*git, *author, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    events = list(from_git(tmp_path))
    assert len({each["user_id"] for each in events}) == len(events) == 4
    assert {len(each["idempotency_key"]) for each in events} == {40}
