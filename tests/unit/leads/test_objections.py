"""The objections that are read in people's words. No text upsets the reading."""

import timeit
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.leads.objections import NEGATIONS, OBJECTIONS, READ_CHARACTERS_MAX, objections_in
from tests.support.examples import examples


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
        ("Write to ann@acme.com: we have no competitor", ()),
        ("We are in the EU and have no competitor", ()),
        ("No es más caro que antes", ()),
        ("jámas es caro", ()),
        ("eu pago no cartão caro demais", ("price",)),
        ("Não tenho pressa, mas é caro", ("price",)),
        ("Não tem pressa porém é caro", ("price",)),
        ("O preço no contrato é caro, com certeza", ("price",)),
    ],
)
def test_objections(text: str, topics: tuple[str, ...]) -> None:
    assert objections_in(text) == topics


@given(st.sampled_from(sorted(NEGATIONS)), st.integers(0, 3))
def test_a_negation_reaches_three_words_of_its_clause(negation: str, between: int) -> None:
    filler = " table" * between
    assert objections_in(f"{negation}{filler} expensive") == (("price",) if between == 3 else ())
    assert objections_in(f"{negation}. EXPENSIVE") == ("price",)


@given(st.text(max_size=200) | st.text(st.characters(categories=["Mn", "Cf", "Lo", "Cs"]), max_size=60))
@settings(max_examples=examples(100))
def test_any_text_reads_the_same_again(text: str) -> None:
    topics = objections_in(text)
    assert list(topics) == sorted(set(topics))
    assert set(topics) <= set(OBJECTIONS)
    assert objections_in(unicodedata.normalize("NFD", text)) == objections_in(
        unicodedata.normalize("NFC", text)
    )


@pytest.mark.parametrize(
    "filler",
    ["\ufdfa", "table ", "\u0301", "not ", "a"],
    ids=["ligature", "words", "accents", "negations", "word"],
)
def test_a_huge_text_is_read_up_to_a_point(filler: str) -> None:
    text = filler * (READ_CHARACTERS_MAX // len(filler))
    assert objections_in(f"{text} . expensive " * 20) == ()
    assert objections_in(f"expensive . {text}") == ("price",)


def test_negations_cost_no_more_than_other_words() -> None:
    def seconds(text: str) -> float:
        return min(timeit.repeat(lambda: objections_in(text), number=1, repeat=3))

    assert seconds("no " * (READ_CHARACTERS_MAX // 3)) < 10 * seconds("on " * (READ_CHARACTERS_MAX // 3))
