"""Words that end or resume messages: whole messages and labels, never a sentence that has the word in it."""

import re
import string
import time

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


# As people write it, one a line. The words that the FCC and carriers prescribe are among them.
OPT_OUTS = """
I revoke my consent
I object to direct marketing
I object to receiving marketing emails
I am objecting to your marketing
I want out
I want off this list
do not ever contact me again
Don't you ever text me again
Never ever message me again
not interested, stop
stop, not interested
I'm not interested. Please remove me
Wrong number, stop
wrong number please remove me
This is spam, stop
for the last time, stop
I have asked you to stop messaging me
stoppp
STOOOP
stop everything
Stop sending me this crap
I want you to stop sending this
I'm opting out of all messages
unsubscribe from all lists
opt me out of your texts
do not call or text me
don't text or call me again
discontinue
discontinue all messages
Stop or I will report you
no further messages
No further contact please
no spam please
remove my number
Reply STOP
lose my number
I wish to unsubscribe
cease
end all
S T O P please
Please S.T.O.P.
I hereby revoke my consent to receive messages
I revoke consent
Revoke
revoke all consent
I withdraw my consent
I am revoking my consent to be contacted
My consent is revoked
consent withdrawn
I do not consent to receive texts
I no longer consent
You do not have my consent to contact me
You don't have permission to text me
Please remove my number from your list
Remove my phone number
delete my number
Delete my number please!
Please delete this number from your database
take my number off your list
Take me off your list
take me off this list please
Get me off this list
remove me from your mailing list
Remove my email address from all lists
Remove my name from your contacts
REMOVE
unsubscribe my number
Unsubscribe me from everything
I would like to opt out
I'd like to opt out of all messages
I want to opt out, please
I need to unsubscribe
I want to be removed from your list
Please, I wish to be unsubscribed
opt me out of everything
I am opting out
I opt out
opt-out of all
Cease and desist
cease all communication
Cease contact
Please cease sending me messages
end all messages
stop all messages
STOP all
Stop texting
Stop texting me
stop calling me
Stop emailing me
stop contacting this number
Quit texting me
stop bothering me!
Never contact me again
Do not contact me ever again
don't email me anymore
do not message this number
Do not text
Please do not call me again
I do not want to hear from you again
I don't want to be contacted
I no longer wish to receive messages
I no longer wish to be contacted
I do not wish to receive any more texts from you
I don't want to be on your list
I said stop
I told you to stop!!!
I want you to stop texting me
text STOP
Replying STOP
reply with unsubscribe
send stop
stop and delete my number
Unsubscribe and remove me from your list
Hi, please remove my number. Thank you!
No. Lose my number.
Stop sending me anything please
don't send me anything
no more contact
revoke, please
Cancel please
quit!
Ich widerrufe meine Einwilligung
Bitte löschen Sie meine Nummer
Lösche meine Nummer!
Lassen Sie mich in Ruhe
Schreiben Sie mir nicht mehr
Revoco mi consentimiento
Por favor eliminen mi número
Borren mi número
No me molesten más
Dejen de escribirme
Revogo meu consentimento
Remova meu número, por favor
Me tire da lista
Parem de me mandar mensagens
Je retire mon consentement
Supprimez mon numéro svp
Ne me contactez plus
Laissez-moi tranquille
Revoco il mio consenso
Cancellate il mio numero
Non scrivetemi più
Ik trek mijn toestemming in
Verwijder mijn nummer
Cofam zgodę
Usuń mój numer
Отзываю согласие
Удалите мой номер
Оставьте меня в покое
Відкликаю згоду
Numaramı silin
Hapus nomor saya
احذف رقمي
אל תשלחו לי הודעות
मेरा नंबर हटाएं
请删除我的号码
撤回同意
連絡しないでください
동의 철회
xóa số của tôi
ลบเบอร์ของฉัน
"""
# Sentences that have such words in them, and say something else, or ask, or say the contrary.
OTHERS = """
please don't stop
Stop sending me the wrong size
stop sending it to my office
please stop sending parcels to my old address
Not interested
Wrong number
I object
I object to the new price
I object to this invoice
I want out of the contract
I want off at the next stop
Can you stop the delivery?
Could you stop by?
Would you remove the onions
can you delete my order
do you ever text
Never ever mind
for the last time, where is my order?
no further questions
discontinued
is it discontinued?
discontinue my order
Stop or go?
Don't call me, text me
do not call or text the driver
Stop this order
go away party
how do I end all my classes?
Can I remove my number from the order?
Remove my number from the order
Please remove the number 5 from my order
remove item 2
Remove my address
Delete my order
delete my email draft
I lost my number
What is my number?
Did you lose my number?
don't lose my number
Please do not remove my number
Do not delete my number from the list
Can I revoke my consent?
How do I withdraw my consent?
What happens if I revoke my consent
I do not revoke my consent
I revoke my offer
I consent
I consent to receive messages
Yes, you have my consent
I do not consent to the new price
cease fire
When does the sale cease?
The offers never cease to amaze me
the be-all and end-all
end all of my subscriptions? no
When does the class end?
end call
The end
Does it end all bookings?
I want to cancel
I want to quit
I want to quit smoking
I want to quit marketing
I need to stop at the shop
I want to stop
I said don't stop
I told you to stop by
Don't reply
Please reply
Reply to my message
I replied STOP yesterday, why?
Do I reply STOP to win?
If I reply STOP what happens?
Send me a text
text me
Text me tomorrow
Stop calling me an idiot
Don't call me babe
don't call me
Do not text me at night
don't contact me before Monday
Don't email me, text me
Do not disturb
Never mind
never stop texting me
Contact me again
I want to hear from you
I want to be on your list
Take me to your list
take me off guard
Get me a list
Add my number to your list
Update my number
I wish to subscribe
I wish to unsubscribe my brother
I wish you would stop by
Unsubscribe link?
The unsubscribe link is broken
How can I unsubscribe
Why did you remove my number from the list?
unsubscribe from what
opt
opt in to all
I want to opt in
stop and go
stop and shop
Stop and think
Can you stop and pick it up
leave my number on the list
S T O P B Y
please S T O P B Y
D O N T S T O P please
I O U N O W
non stop please
my bus has a stop
No contact lenses please
contact
I have no more questions
no more, thanks
quit playing
this is the last stop
the parcel did not stop here
remove ads from the app
Who removed me from the list?
consent form
The consent is not revoked
You do not have my size
I do not have permission to log in
Lösche meine Bestellung
Meine Nummer hat sich geändert
Widerruf
Cancella il mio ordine
Supprimez ma commande
Borren mi pedido
No me manden la factura por correo
Remova o item do carrinho
Удалите мой заказ
Usuń moje zamówienie
删除我的订单
我的号码换了
"""


@pytest.mark.parametrize("text", OPT_OUTS.strip().splitlines())
def test_a_sentence_by_which_somebody_opts_out(text: str) -> None:
    assert consent_in(text) == consent_in(text.upper()) == consent_in(f"Hello. {text}. Thanks") == OFF


@pytest.mark.parametrize("text", OTHERS.strip().splitlines())
def test_a_sentence_of_the_same_words_that_is_no_opt_out(text: str) -> None:
    assert consent_in(text) == consent_in(text.upper()) == consent_in_choice([text], []) == {}


@settings(max_examples=examples(100))
@given(
    st.sampled_from(OPT_OUTS.strip().splitlines()),
    st.sampled_from(["don't ", "how do I ", "did you say ", "x "]),
)
def test_a_word_before_it_makes_it_another_sentence(text: str, before: str) -> None:
    assert consent_in(f"{before}{text}") != {"notifications": "on"}
    if not re.search(r"[.!?,]", text):
        assert consent_in(f"{before}{text}") == {}


def test_no_text_takes_long_to_read() -> None:
    began = time.process_time()
    for piece in (
        "i want to ",
        "unsubscribe from all ",
        "do not ",
        "stop sending me the ",
        "s t o p ",
        "list of the ",
    ):
        consent_in((piece * 80)[: CONSENT_CHARACTERS_MAX - 2] + "x")
    assert time.process_time() - began < 1
