"""Words that end or resume messages: whole messages and labels, never a sentence that has the word in it."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.leads.consent import (
    CONSENT_CHARACTERS_MAX,
    POLITE_PHRASES,
    TEXT_MEANINGS,
    consent_in,
    consent_in_choice,
)
from tests.support.examples import examples

OFF, ON = {"notifications": "off"}, {"notifications": "on"}


@pytest.mark.parametrize(
    "text",
    [
        *("STOP", "stop!", " Stop. ", "Stop all", "STOPALL", "s\u200btop", "ＳＴＯＰ", "*Stop*", "_stop_", "Stop 🛑", "Stop?"),
        *("S T O P A L L", "s.t.o.p.a.l.l.", "S T O P  M E S S A G E", "A R R Ê T E Z", "S_T_O_P", "S T O O P"),
        *("U N S U B S C R I B E  M E", "O P T  O U T", "D é s a b o n n e r", "с т о п", "S T O P P"),
        *("S T O P", "s.t.o.p.", "stop stop stop", "STOP\nSTOP", "opt-out", "OPT OUT", "Cancel", "quit"),
        *("Please stop", "Stop, please!", "Stop now. Thank you", "Unsubscribe me, please", "I want to unsubscribe"),
        *("Stop promotions", "Stop sending me these promotional messages", "STOP, unsubscribe me", "No more messages"),
        *("Unsubscribe from your newsletter", "Opt out of marketing", "Remove me from this list", "Turn off notifications"),
        *("Don't send me messages", "do not contact me", "I don't want your ads", "Stop the WhatsApp messages"),
        *("Sair", "NÃO quero mais", "Parar promoções", "Não quero mais receber mensagens", "Cancelar inscrição"),
        *("baja", "¡BAJA!", "Darme de baja, por favor", "Detener promociones", "No quiero más publicidad"),
        *("Abmelden", "Bitte keine Werbung mehr!", "Werbung abbestellen", "STOPP", "Arrêter les promotions", "Me désabonner"),
        *("Interrompi promozioni", "Geen berichten meer", "Uitschrijven", "Стоп", "Остановить рекламу", "отписаться"),
        *("Hentikan promosi", "Promosyonları durdur", "إيقاف العروض الترويجية", "إلغاء الاشتراك", "הסר", "रोकें"),
        *("退订", "取消订阅", "配信停止", "수신거부", "停止推广", "プロモーションを停止", "프로모션 중지", "Dừng khuyến mãi"),
        *("ok stop", "just stop", "Hi, stop", "No. Stop.", "dont text me", "Do not contact me again", "Leave me alone"),
        *("Stop. Ok thanks", "Stop, ok thank you", "ok thanks. stop", "No thanks. Stop", "S'il vous plaît merci. Stop!"),
        *("Stop spamming me", "Unsubscribe from all", "unsuscribe", "Stop sending these", "No more messages anymore"),
        *("Darse de baja", "Ya no quiero recibir mensajes", "No recibir más promociones", "no me escriban más"),
        *("Bitte keine Werbung mehr senden", "Nicht mehr kontaktieren", "Ne plus recevoir", "Stop aux promotions"),
        *("Se désinscrire", "Не пишите мне", "إلغاء", "प्रमोशन बंद करें", "Zrezygnuj", "หยุดโปรโมชัน"),
    ],
)  # fmt: skip
def test_a_message_that_says_stop_and_nothing_else_is_an_opt_out(text: str) -> None:
    assert consent_in(text) == OFF


@pytest.mark.parametrize("text", ["START", "Unstop", "voltar", "alta", "Resume promotions", "Opt in, please"])
def test_words_that_resume_messages(text: str) -> None:
    assert consent_in(text) == ON


@pytest.mark.parametrize(
    "text",
    [
        *("stop by tomorrow", "STOP by later?", "do not stop", "don't stop", "Please don’t stop the messages", "never stop"),
        *("I can't stop laughing", "nonstop", "non-stop", "one-stop shop", "the bus stop", "stop 2", "Stop that", "Stop it"),
        *("I don't want to stop your messages", "I don't want to unsubscribe from your newsletter", "Can you stop messages?"),
        *("How do I unsubscribe?", "No, more messages please", "Stop messages? No", "more offers please", "Stop the order"),
        *("cancel my order", "Cancel offer", "end of message", "quit smoking", "stop, start", "No, thanks", "Not interested"),
        *("não quero cancelar as mensagens", "No quiero dejar de recibir mensajes", "Dejar mensaje", "alto volume"),
        *("D O N T  S T O P", "N O N S T O P", "S T O P  B Y", "S P O T", "B U S  S T O P", "S T O P  2"),
        *("No", "ok", "No, hello", "ok, no", "Hi again", "Stop. No", "just a moment", "leave me a message"),
        *("keine Nachricht", "Plus de promotions", "не стоп", "привет stop", "", "🛑", "stop " * 20, "messages", "please"),
    ],
)  # fmt: skip
def test_a_sentence_that_has_the_word_in_it_is_none(text: str) -> None:
    assert consent_in(text) == {}
    assert consent_in_choice([text], []) == {}


@pytest.mark.parametrize(
    ("label", "name"),
    [
        *(
            ("Stop promotions", ""),
            ("Unsubscribe from Promos", "x"),
            ("STOP", "1"),
            ("Parar promoções", "PROMO_42"),
        ),
        *(
            ("No, thanks", "STOP"),
            ("No", "stop_promotions"),
            ("✖", "StopPromotions"),
            ("No", "btn-unsubscribe-3"),
        ),
        *(("No", "OPT_OUT"), ("No", "optout_v2"), ("No", "opt-out-marketing"), ("No", "0_Stop_promotions")),
        *(("Yes", "payload:stop"), ("Subscribe", "unsubscribe")),
    ],
)
def test_a_button_counts_by_its_label_and_by_its_name(label: str, name: str) -> None:
    assert consent_in_choice([label], [name]) == OFF


@pytest.mark.parametrize(
    ("label", "name", "said"),
    [
        *(("Cancel", "cancel", {}), ("Voltar", "VOLTAR", {}), ("Start", "START", {}), ("End", "quit", {})),
        *(("Sair", "sair", {}), ("Bus", "BUS_STOP", {}), ("Go on", "DONT_STOP", {}), ("x", "STOP " * 50, {})),
        *(("Subscribe", "", ON), ("Yes", "OPT_IN", ON), ("Resume promotions", "", ON)),
    ],
)
def test_a_step_of_a_dialogue_ends_nothing(label: str, name: str, said: dict[str, str]) -> None:
    assert consent_in_choice([label], [name]) == said


@settings(max_examples=examples(60))
@given(
    st.sampled_from(sorted(each for each, said in TEXT_MEANINGS.items() if said == "off")),
    st.sampled_from([str.upper, str.title, str.swapcase, str]),
    st.text(string.punctuation + " \t\n\u00a0\u200b\ufeff🙏", max_size=6),
    st.text(string.punctuation + " \t\n\u00a0\u200b\ufeff🛑", max_size=6),
)
def test_case_and_what_stands_around_a_phrase_change_nothing(
    word: str, case: object, before: str, after: str
) -> None:
    assert consent_in(before + case(word) + after) == OFF  # type: ignore[operator]


@settings(max_examples=examples(500))
@given(
    st.sampled_from(
        ["stop", "parar", "стоп", "退订", "stop promotions", "keine Werbung mehr", "unstop", "start"]
    ),
    st.lists(st.sampled_from(sorted(POLITE_PHRASES)), min_size=1, max_size=3),
    st.integers(0, 3),
    st.lists(
        st.sampled_from([" ", ". ", ", ", "! ", "\n", " - ", "… ", " 🙏 ", ".", "/"]), min_size=5, max_size=5
    ),
)
def test_politeness_around_a_phrase_changes_nothing(
    phrase: str, polite: list[str], place: int, gaps: list[str]
) -> None:
    said = [*polite[:place], phrase, *polite[place:]]
    text = "".join(word + gap for word, gap in zip(said, gaps, strict=False))
    assert consent_in(text) == consent_in(phrase) != {}


@settings(max_examples=examples(60))
@given(st.text(max_size=CONSENT_CHARACTERS_MAX + 10))
def test_no_text_upsets_it(text: str) -> None:
    assert consent_in(text) in ({}, OFF, ON)
    assert consent_in_choice([text], [text]) in ({}, OFF, ON)
