"""The fallback reading: what it sees, what it must not see, and that nothing upsets it."""

import timeit
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.leads.language import CHARACTERS_MAX, NEGATIONS, WEIGHTS, TextReading, read_text


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("I love it", 1000),
        ("I don't love it", -1000),
        ("I don’t love it", -1000),
        ("Not bad at all!", 500),
        ("no problem", 500),
        ("No, I love it", 1000),
        ("It is not that I love it", -1000),
        ("I would not say so. Perfect anyway", 1000),
        ("good but slow", 0),
        ("never not good", 500),
        ("Adorei, muito obrigado", 750),
        ("Não gostei", -500),
        ("jantar no melhor restaurante com você", 1000),
        ("No me gusta", -500),
        ("ÉL ES PÉSIMO", -1000),
        ("it is a table", None),
        ("lovely goodness", None),
        ("", None),
        ("   \n", None),
        ("🙂🙂", None),
        ("l\u200bove", 1000),
    ],
)
def test_sentiment(text: str, milli: int | None) -> None:
    assert read_text(text).sentiment_milli == milli


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("That is too expensive for us.", ("price",)),
        ("It's not expensive", ()),
        ("We can't afford it, maybe next quarter", ("price", "timing")),
        ("está muy caro y no tengo dinero", ("price",)),
        ("Agora não, já usamos outro fornecedor", ("competitor", "timing")),
        ("Más tarde", ("timing",)),
        ("I don't trust you: it is a scam", ("trust",)),
        ("não preciso disso", ("need",)),
        ("we need it now", ()),
        ("carousel", ()),
    ],
)
def test_objections(text: str, topics: tuple[str, ...]) -> None:
    assert read_text(text).objections == topics


@given(st.sampled_from(sorted(WEIGHTS)), st.sampled_from(sorted(NEGATIONS)), st.integers(0, 3))
@settings(max_examples=60)
def test_a_negation_turns_a_word_round_within_its_reach_only(word: str, negation: str, between: int) -> None:
    filler = " table" * between
    sign = 1 if between == 3 else -1
    assert read_text(f"{negation}{filler} {word}").sentiment_milli == sign * WEIGHTS[word]
    assert read_text(f"{negation}. {word}").sentiment_milli == WEIGHTS[word]
    assert read_text(word.upper()).sentiment_milli == WEIGHTS[word]


@given(st.lists(st.sampled_from(sorted({*WEIGHTS, *NEGATIONS, "table", "but", ","})), max_size=12))
@settings(max_examples=60)
def test_turning_every_word_round_turns_the_text_round(words: list[str]) -> None:
    turned = " ".join(words)
    milli = read_text(turned).sentiment_milli
    clauses = [f"hardly {word}" for word in words if word in WEIGHTS]
    assert (milli is None) is (not clauses)
    plain, opposite = (
        read_text(". ".join(word for word in words if word in WEIGHTS)),
        read_text(". ".join(clauses)),
    )
    if plain.sentiment_milli is not None and opposite.sentiment_milli is not None:
        assert plain.sentiment_milli == -opposite.sentiment_milli


@given(st.text(max_size=200) | st.text(st.characters(categories=["Mn", "Cf", "Lo", "Cs"]), max_size=60))
@settings(max_examples=100)
def test_any_text_reads_within_range_and_the_same_again(text: str) -> None:
    reading = read_text(text)
    assert reading.sentiment_milli is None or -1000 <= reading.sentiment_milli <= 1000
    assert list(reading.objections) == sorted(set(reading.objections))
    assert read_text(text) == reading
    assert (
        read_text(unicodedata.normalize("NFD", text)).sentiment_milli
        == read_text(unicodedata.normalize("NFC", text)).sentiment_milli
    )


@pytest.mark.parametrize(
    "filler",
    ["\ufdfa", "table ", "\u0301", "not ", "a"],
    ids=["ligature", "words", "accents", "negations", "word"],
)
def test_a_huge_text_is_read_up_to_a_point(filler: str) -> None:
    text = filler * (CHARACTERS_MAX // len(filler))
    assert read_text(f"{text} . love " * 20) == TextReading()
    assert read_text(f"love . {text}").sentiment_milli == 1000


def test_negations_cost_no_more_than_other_words() -> None:
    def seconds(text: str) -> float:
        return min(timeit.repeat(lambda: read_text(text), number=1, repeat=3))

    assert seconds("no " * (CHARACTERS_MAX // 3)) < 10 * seconds("on " * (CHARACTERS_MAX // 3))


def test_nothing_is_said_by_default() -> None:
    assert read_text("table") == TextReading(None, ())
