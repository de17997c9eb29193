"""A catalogue that makes no sense is refused with line and reason, and nothing is published (rule 13)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.book import BookStore, shipped_document
from ingest.book import Proposal, publish
from ingest.book_document import book_of_document
from local.book import check
from local.book_file import UnreadableBook, read_file
from rules.book.book import Book
from rules.book.differences import differences
from rules.book.document import BookRefused
from rules.json_values import DoubledKey, read_json, unique_keys
from tests.support.published_books import Table

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
MUG: dict[str, Any] = {"price_points": 50, "brand": "acme", "stock": 20, "limit_per_user": 2}


def book(**rewards: Any) -> dict[str, Any]:
    return {**shipped_document(), "rewards": rewards}


def mug(**said: Any) -> dict[str, Any]:
    return book(mug=MUG | said)


def refusal(document: Any) -> list[str]:
    with pytest.raises(BookRefused) as refused:
        book_of_document(document)
    return [str(each) for each in refused.value.faults]


def published(store: BookStore, document: Any, effective: datetime | None = None) -> Book:
    return publish(store, Proposal(document, effective, "ann"), NOW).book


def test_a_book_without_rewards_has_an_empty_catalogue() -> None:
    assert dict(book_of_document(shipped_document()).rewards) == {}


def test_a_reward_is_read_and_is_valid_between_two_instants() -> None:
    said = {"valid_from": "2027-03-01T00:00:00+01:00", "valid_until": "2027-04-01T00:00:00+02:00"}
    reward = book_of_document(mug(**said)).rewards["mug"]
    assert (reward.price_points, reward.brand, reward.stock, reward.limit_per_user) == (50, "acme", 20, 2)
    begin = datetime(2027, 2, 28, 23, tzinfo=UTC)
    end = datetime(2027, 3, 31, 22, tzinfo=UTC)
    instants = (begin - timedelta(microseconds=1), begin, end - timedelta(microseconds=1), end)
    assert [reward.is_valid(each) for each in instants] == [False, True, True, False]
    endless = book_of_document(book(tea={"price_points": 1, "brand": "b"})).rewards["tea"]
    assert (endless.stock, endless.limit_per_user, endless.is_valid(NOW)) == (None, None, True)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (mug(price_points=0), "rewards.mug.price_points must be bigger than or equal to 1"),
        (mug(price_points=-5), "rewards.mug.price_points must be bigger than or equal to 1"),
        (mug(price_points=2.5), "rewards.mug.price_points must be integer"),
        (mug(price_points=50.0), "rewards.mug.price_points is 50.0: write 50"),
        (mug(price_points=True), "rewards.mug.price_points must be integer"),
        (mug(price_points="50"), "rewards.mug.price_points must be integer"),
        (book(mug={"brand": "acme"}), "rewards.mug.price_points is missing"),
        (book(mug={"price_points": 5}), "rewards.mug.brand is missing"),
        (mug(brand=""), "rewards.mug.brand must match pattern"),
        (mug(brand="a b"), "rewards.mug.brand must match pattern"),
        (mug(stock=-1), "rewards.mug.stock must be bigger than or equal to 0"),
        (mug(stock=None), "rewards.mug.stock must be integer"),
        (mug(limit_per_user=0), "rewards.mug.limit_per_user must be bigger than or equal to 1"),
        (mug(valid_from="2027-03-01T00:00:00"), "rewards.mug.valid_from must be an RFC 3339 timestamp"),
        (mug(valid_until="tomorrow"), "rewards.mug.valid_until must be an RFC 3339 timestamp"),
        (
            mug(valid_from="2027-03-02T00:00:00Z", valid_until="2027-03-01T00:00:00Z"),
            "rewards.mug.valid_until is not after valid_from",
        ),
        (
            mug(valid_from="2027-03-01T01:00:00+01:00", valid_until="2027-03-01T00:00:00Z"),
            "rewards.mug.valid_until is not after valid_from",
        ),
        (mug(colour="red"), "rewards.mug.colour is unknown"),
        (book(**{"a b": MUG}), "rewards"),
        (book(**{"a/b": MUG}), "rewards"),
        (book(streak_freeze=MUG), "rewards.streak_freeze is the name of what the book sells elsewhere"),
        (book(**{f"r{number}": MUG for number in range(501)}), "rewards must contain less than or equal"),
        ({**shipped_document(), "rewards": []}, "rewards must be object"),
        (mug(description="x" * 501), "rewards.mug.description must be shorter"),
        (mug(title=""), "rewards.mug.title must be longer"),
        (mug(title="x" * 101), "rewards.mug.title must be shorter"),
        (mug(title=None), "rewards.mug.title must be string"),
        (mug(title=" \t "), "rewards.mug.title is blank: leave it out"),
        (mug(title="Mug\nof tea"), "rewards.mug.title has the character U+000A"),
        (mug(title="Mug\x00"), "rewards.mug.title has the character U+0000"),
        (mug(title="\u202egum"), "rewards.mug.title has the character U+202E"),
        (mug(description="a\rb"), "rewards.mug.description has the character U+000D"),
        (
            mug(image_url="http://example.com/a.png"),
            "rewards.mug.image_url must begin with https:// or data:image/",
        ),
        (
            mug(image_url="//example.com/a.png"),
            "rewards.mug.image_url must begin with https:// or data:image/",
        ),
        (
            mug(image_url="javascript:alert(1)"),
            "rewards.mug.image_url must begin with https:// or data:image/",
        ),
        (
            mug(image_url="data:text/html,AA=="),
            "rewards.mug.image_url must begin with https:// or data:image/",
        ),
        (mug(image_url="data:image/png;base64"), "rewards.mug.image_url has no picture"),
        (mug(image_url="data:image/svg+xml,<svg a='1 2'/>"), "rewards.mug.image_url must be a URL in ASCII"),
        (
            mug(image_url=" https://example.com/"),
            "rewards.mug.image_url must begin with https:// or data:image/",
        ),
        (mug(image_url="https://example.com/a b.png"), "rewards.mug.image_url must be a URL in ASCII"),
        (mug(image_url="https://example.com/ä.png"), "rewards.mug.image_url must be a URL in ASCII"),
        (mug(image_url="https://example.com\\a"), "rewards.mug.image_url must be a URL in ASCII"),
        (mug(image_url="https://"), "rewards.mug.image_url has no host"),
        (mug(image_url="https:///a.png"), "rewards.mug.image_url has no host"),
        (mug(image_url="https://example.com:0/"), "rewards.mug.image_url has no host"),
        (mug(image_url="https://example.com:port/"), "rewards.mug.image_url is no URL"),
        (mug(image_url="https://[::1/"), "rewards.mug.image_url is no URL"),
        (mug(image_url="https://ann:secret@example.com/"), "rewards.mug.image_url must not have a user"),
        (mug(image_url="https://e.com/" + "x" * 1000), "rewards.mug.image_url must be shorter"),
        (mug(image_url=["https://e.com/"]), "rewards.mug.image_url must be string"),
        (mug(description="x" * 10_000_000), "the book has 100"),
    ],
    ids=lambda each: each[:60] if isinstance(each, str) else "",
)
def test_what_makes_no_sense_is_refused_and_nothing_is_published(document: Any, told: str) -> None:
    assert refusal(document)[0].startswith(told)
    table = Table()
    with pytest.raises(BookRefused):
        published(BookStore(table, "RuleBooks"), document)
    assert table.items == []


def test_what_people_read_of_a_reward_is_kept_as_it_was_written() -> None:
    said = {
        "title": "<b>Mug</b> & 杯 👩\u200d🚀",
        "description": "Holds tea.\nOr <script>alert(1)</script>.",
        "image_url": "https://pictures.example.com:8443/mug%20blue.png?width=300",
    }
    reward = book_of_document(mug(**said)).rewards["mug"]
    assert {name: getattr(reward, name) for name in said} == said
    assert list(differences(mug(), mug(title="Cup"))) == ["rewards.mug.title: new: Cup"]
    bare = book_of_document(mug()).rewards["mug"]
    assert (bare.title, bare.description, bare.image_url) == ("", "", "")


def test_a_file_names_the_line_of_each_fault(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(
        "event_types:\n  READ: {points: 5}\nrewards:\n  mug:\n    price_points: 5\n    brand: acme\n"
        "    valid_from: 2027-03-01T00:00:00\n    image_url: http://e.com/\n  streak_freeze:\n    price_points: 5\n"
        "    brand: acme\n"
    )
    with pytest.raises(RuntimeError) as refused:
        check(path)
    first, picture, second = str(refused.value).splitlines()
    assert first.startswith("book.yaml:7: rewards.mug.valid_from must be an RFC 3339")
    assert picture == "book.yaml:8: rewards.mug.image_url must begin with https:// or data:image/"
    assert second.startswith("book.yaml:9: rewards.streak_freeze is the name of")


def test_an_id_that_is_there_twice_is_refused_in_a_file_and_in_a_request(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text("rewards:\n  mug: {price_points: 5}\n  mug: {price_points: 6}\n")
    with pytest.raises(UnreadableBook, match=r"book.yaml:3: the key 'mug' is there twice"):
        read_file(path)
    with pytest.raises(DoubledKey, match=r"the key 'mug' twice"):
        read_json(
            '{"book": {"rewards": {"mug": {"price_points": 5}, "mug": {"price_points": 6}}}}', unique_keys
        )
    assert read_json(json.dumps({"book": mug()}), unique_keys) == {"book": mug()}


def test_a_file_of_10_mb_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(f"rewards:\n  mug: {{price_points: 5, brand: b}} # {'x' * 10_000_000}\n")
    with pytest.raises(UnreadableBook, match=r"book.yaml: has 100000"):
        read_file(path)


def test_differences_are_told_by_reward() -> None:
    assert list(differences(mug(), mug(price_points=60))) == ["rewards.mug.price_points: 50 -> 60"]
    assert list(differences(book(), mug())) == [
        "rewards.mug: new: {price_points: 50, brand: acme, stock: 20, limit_per_user: 2}"
    ]


def test_a_stock_is_raised_and_never_lowered_over_all_versions() -> None:
    store = BookStore(Table(), "RuleBooks")
    published(store, mug(stock=20))
    assert published(store, mug(stock=30)).rewards["mug"].stock == 30
    published(store, book())
    for stock in (0, 29):
        with pytest.raises(BookRefused, match=r"rewards.mug.stock was 30: a stock is never lowered"):
            published(store, mug(stock=stock))
    planned = NOW + timedelta(days=2)
    assert published(store, mug(stock=40), planned).rewards["mug"].stock == 40
    with pytest.raises(BookRefused, match=r"rewards.mug.stock is 40 in a version that is planned"):
        published(store, mug(stock=41))
    assert published(store, book(mug={"price_points": 5, "brand": "acme"})).rewards["mug"].stock is None
    assert published(store, mug(stock=35, price_points=7)).rewards["mug"].price_points == 7
