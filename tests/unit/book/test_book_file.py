"""A book as a file: what is wrong is told by its line, and what `show` prints `publish` takes."""

import json
from pathlib import Path

import pytest

from adapters.book_store import shipped_document
from local.book_file import FILE_BYTES_MAX, UnreadableBook, read_file
from local.command import as_yaml
from local.rules_command import check, check_command

SMALL = """# points for readers
event_types:
  READ:
    points: 5
    cap: {points: 50, per: day}
boosts:
  - since: 2026-06-01T00:00:00Z
    until: 2026-06-02T00:00:00Z
    factor: 2
"""


def file_of(folder: Path, text: str, name: str = "book.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_shown_is_read_again(tmp_path: Path) -> None:
    for text in (
        as_yaml(shipped_document()),
        json.dumps(shipped_document()),
        json.dumps(shipped_document(), indent="\t"),
    ):
        assert check(file_of(tmp_path, text)).document == shipped_document()


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_signs_of_all_planes_are_read_as_json_writes_them(tmp_path: Path, ensure_ascii: bool) -> None:
    document = shipped_document()
    festive = {**document["event_types"]["CHECK_IN"], "description": "🎉 \u2028 \x85\x7f é"}
    festive["properties"] = {"properties": {"🎉": {"type": "string"}}}
    document = {**document, "event_types": {**document["event_types"], "CHECK_IN": festive}}
    told = json.dumps(document, indent=2, ensure_ascii=ensure_ascii)
    assert check(file_of(tmp_path, told, "book.json")).document == document
    assert check(file_of(tmp_path, as_yaml(document))).document == document


def test_an_instant_is_a_text_as_in_json(tmp_path: Path) -> None:
    document = check(file_of(tmp_path, SMALL)).document
    assert document["boosts"][0]["since"] == "2026-06-01T00:00:00Z"
    assert check(file_of(tmp_path, as_yaml(document))).document == document
    assert read_file(file_of(tmp_path, 'values: ["a\tb"]\n')).document == {"values": ["a\tb"]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SMALL.replace("points: 50", "points: 4"), "book.yaml:5: event_types.READ.cap.points is below"),
        (SMALL.replace("2026-06-01T", "2026-06-09T"), "book.yaml:8: boosts.0.until is not after since"),
        (SMALL.replace("    factor: 2\n", ""), "book.yaml:7: boosts.0.factor is missing"),
        (
            SMALL.replace("    points: 5", "    points: five"),
            "book.yaml:4: event_types.READ.points must be integer",
        ),
        (
            SMALL.replace("    points: 5", "    worth: 5"),
            "book.yaml:3: event_types.READ.points is missing\nbook.yaml:4: event_types.READ.worth is unknown: ",
        ),
        (SMALL + "prices: {}\n", "book.yaml:10: prices is unknown: there are format, event_types, "),
        (SMALL.replace("    factor", "    color: 1\n    factor"), "book.yaml:9: boosts.0.color is unknown"),
        (
            SMALL + "rewards:\n  mug: {price_points: 1, brand: a}\n  a b: {price_points: 1, brand: a}\n",
            "book.yaml:12: rewards.a b is no name: it must match ",
        ),
        ("", "book.yaml:1: the book must be object"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(RuntimeError) as refused:
        check(file_of(tmp_path, text))
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1", "book.yaml:1: "),
        ("a: 1\nb: !!int abc", "book.yaml:2:"),
        ("a: 1\nb: !!int ''", "book.yaml:2:"),
        ("a: 1\nb: !!bool maybe", "book.yaml:2:"),
        ("a: 1\nb: " + "9" * 5000, "book.yaml:2:"),
        *((f"a: !!int {value}", "book.yaml:1:") for value in ("1:30", "010", "1_0", "0x10")),
        ("a: 1\nb: 2\na: 3\n", "book.yaml:3: the key 'a' is there twice"),
        ("a: &x {b: 1}\nc: *x\n", "book.yaml:1: an alias repeats a part"),
        ("a: &x [*x]\n", "book.yaml:1: an alias repeats a part"),
        ("? [1]\n: 2\n", "book.yaml:1: the key"),
        ("a: !!python/object:os.system {}\n", "book.yaml:1: "),
        ("[" * 5_000, "book.yaml:1: it is nested too deeply"),
        ("a: \x00", "book.yaml:1: "),
        ("a: 1\nb: 1e400\n", "book.yaml:2: '1e400' is no float as JSON writes it"),
        ('a: 1\nb: "\\ud800"\n', "book.yaml:2: it has half of a character"),
        ("# " + "x" * FILE_BYTES_MAX, f"book.yaml: has {FILE_BYTES_MAX + 2} bytes"),
    ],
    ids=lambda each: each[:40],
)
def test_what_is_no_file_of_a_book_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UnreadableBook) as refused:
        read_file(file_of(tmp_path, text))
    assert str(refused.value).startswith(told)


def test_a_file_with_thousands_of_faults_tells_the_first_and_how_many_there_are(tmp_path: Path) -> None:
    document = {**shipped_document(), **{f"k{number}": 1 for number in range(500)}}
    with pytest.raises(RuntimeError) as refused:
        check(file_of(tmp_path, json.dumps(document, indent=1), "book.json"))
    lines = str(refused.value).splitlines()
    assert (len(lines), lines[-1]) == (101, "book.json: 500 faults, of which these are the first 100")
    assert lines[0].partition(": ")[2].startswith("k0 is unknown")


@pytest.mark.parametrize("text", ["03:00", '"03:00"', "'03:00'"])
def test_a_start_of_the_day_is_told_by_the_checker(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_of(tmp_path, f"{SMALL}daily: {{day_starts_at: {text}}}\n")
    assert check(file).document["daily"] == {"day_starts_at": "03:00"}
    check_command.callback(file=file)  # type: ignore[misc]
    assert "a date begins at 03:00 by the clock on the wall" in capsys.readouterr().out


def test_a_start_that_yaml_reads_as_a_number_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in quotation marks"):
        check(file_of(tmp_path, f"{SMALL}daily: {{day_starts_at: 5:30}}\n"))
