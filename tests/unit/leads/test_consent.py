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
        *("Stop it", "Stop that", "Can you stop messages?", "stop " * 20, "UNSUSCRIBE", "unsubcribe me"),
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
        *("I can't stop laughing", "nonstop", "non-stop", "one-stop shop", "the bus stop", "stop 2"),
        *("I don't want to stop your messages", "I don't want to unsubscribe from your newsletter"),
        *("How do I unsubscribe?", "No, more messages please", "Stop messages? No", "more offers please", "Stop the order"),
        *("cancel my order", "Cancel offer", "end of message", "quit smoking", "stop, start", "No, thanks", "Not interested"),
        *("não quero cancelar as mensagens", "No quiero dejar de recibir mensajes", "Dejar mensaje", "alto volume"),
        *("D O N T  S T O P", "N O N S T O P", "S T O P  B Y", "S P O T", "B U S  S T O P", "S T O P  2"),
        *("No", "ok", "No, hello", "ok, no", "Hi again", "Stop. No", "just a moment", "leave me a message"),
        *("keine Nachricht", "Plus de promotions", "не стоп", "привет stop", "", "🛑", "stop " * 40, "messages", "please"),
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


@pytest.mark.parametrize("word", ["stop", "parar", "стоп", "keine Werbung mehr", "start"])
@pytest.mark.parametrize(
    "text",
    [
        "{} i did not sign up for this this is harassment",
        "i did not sign up for this this is harassment {}",
        "{} I never signed up for this THIS is harassment!",
        "Thank you, you have the wrong number. {}",
        "{}. Thank you you got the wrong number",
        "thank you 🙏 you've got the wrong number\n{}",
    ],
)
def test_a_word_that_ends_one_phrase_and_begins_the_next_is_said_twice(text: str, word: str) -> None:
    assert consent_in(text.format(word)) == consent_in(word) != {}


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
Can you stop texting me?
Could you please stop messaging me
Will you stop texting me
can u stop texting me
Could you take me off your list please
please can you unsubscribe me
Can I be removed from this list?
May I be unsubscribed please
Stop it!
STOP THIS
stop these
stop them
pls stop
plz stop
stop txting me
stop msging me
no more texts
no more texts please
no more messages thank you
No more emails!
no texting
Don't call me
Do not call me
Don't text
don't message
Do not email
no calls
Stop calling
stop text
Stop txt
stop sms
stopsms
stop-all
Stop Please.
STOP PLEASE STOP
please please stop
stop immediately
stop sending messages
stop sending me stuff
Stop sending me sms
stop sending messages to this number
Please stop sending messages to my phone
stop contacting my number
stop sending me your newsletter
stop ur msgs
quit sending me messages
Quit it
quit bugging me
stop hounding me
stop pestering me
Stop the spam
stop with the texts
enough with the texts
no spam
take me off your list
take me off the mailing list
take my name off your list
remove
Remove me please
remove me from list
remove me from this
remove me from your database
please remove me from your contact list
Delete me from your list
Delete my info
delete my data
erase my data
Forget me
get me off this
Get me out of this list
unenroll
Unenroll me
opt me out
Opt-out please
optout all
I'd like to be removed
I want off your list
i want to stop receiving messages
I'd like to stop receiving these
I would like to stop receiving your emails
I want to unsubscribe now
I'm unsubscribing
I already said stop
I've asked you to stop
I don't want these messages
I don't want any more messages
I do not want to receive this
I don't want to receive these anymore
don't want these texts
don't want any texts
I no longer want these
i no longer want to receive messages from you
I don't want to hear from you
I didn't sign up for this, stop
I did not consent to this
I never consented
I never gave you permission to text me
You don't have permission to contact me
Consent revoked
I hereby withdraw consent
revoke consent
revoke my consent
I rescind my consent
Please revoke my consent to text
Withdraw my consent please
I withdraw consent to be texted
I request to be removed
I request that you stop contacting me
you need to stop
You must stop
don't bother me again
Do not bother me
go away
Leave me alone!
please leave me alone
stop harassing me
stop or I'll sue
block me
do not contact me
Do not contact this number
don't contact me anymore
Don't ever contact me
never text me
Never call me
Lose this number
lose my number now
delete this number
remove this number
remove my phone
remove my cell from your list
Wrong number. Stop texting
wrong number please remove
You have the wrong number. Remove me
not me, stop
This isn't Bob, please remove this number
unsubscribe please
unsubscribe this number
UNSUBSCRIBE ALL
unsuscribe me
unsubscibe
unsubscribed
unsubscribe!
un-subscribe
Unscubscribe
stpo
Stoop
"Stop"
'stop'
stop👎
🛑 stop
END
end messages
CANCEL
Cancel texts
cancel subscription
QUIT
REVOKE
OPTOUT
no thanks, stop
No thank you, please stop
I'm good, please stop
not interested stop
not interested, remove me from your list
not interested. do not contact me again
I'm not interested please stop texting
please cease and desist
Cease contacting me
Cease texting me
cease sending me messages
discontinue texts
Terminate
terminate all messages
Halt messages
suspend messages
turn off messages
Turn off these messages
disable notifications
I don't want notifications
Hello, please unsubscribe me from this list. Thank you.
Hey please stop texting me
dude stop texting me
Bro stop
STOP TEXTING ME!!!
f off
stop blowing up my phone
Stop messaging my phone
Please stop contacting us
Do not contact us again
unsubscribe us
we want to unsubscribe
we do not consent to receive marketing
Please remove our number
please remove my email
take my email off your list
I'd prefer not to receive these messages
I would prefer not to be contacted
please don't send me any more messages
please don't send any more texts
Don't send these anymore
don't send me these
don't send me any more
do not send me anything else
Please do not send further messages
please refrain from contacting me
kindly remove my number
Kindly unsubscribe me
Please desist
desist from contacting me
no contact
I opt out of receiving messages
i choose to unsubscribe
I refuse consent
Please take me off
Stop. Wrong person
Stop, I'm not interested
Stop I am not interested
stop - not interested
STOP (wrong number)
Stop to end
STOP to 12345
txt stop
reply stop to unsubscribe
STOP STOP UNSUBSCRIBE
stop and unsubscribe
stop unsubscribe
UNSUBSCRIBE STOP END
Stop & remove
Baja por favor
no me mandes mensajes
No quiero recibir más mensajes
dejen de molestarme
Deja de mandarme mensajes
No más mensajes
Por favor no me escriban más
borrar mi numero
Quítame de tu lista
cancelar
Alto
detener
ya no me manden mensajes
no me llames
para de me mandar mensagem
Não me mande mensagem
não quero receber mensagens
Me remova
me exclua da lista
Arrête
Ne m'envoyez plus rien
désinscrivez-moi
Désabonnez-moi
stop pub
Bitte abmelden
Keine Nachrichten mehr
keine SMS mehr bitte
hör auf
hört auf mir zu schreiben
Melden Sie mich ab
ich möchte keine Nachrichten mehr
Bitte entfernen Sie mich
Entfernen Sie meine Nummer
austragen
Bitte austragen
Non voglio più messaggi
non mi scrivete più
Cancellami
disiscrivimi
stop met appen
Schrijf me uit
Nie chcę wiadomości
przestańcie
wypiszcie mnie
Хватит
не пишите мне больше
Отпишите
Прекратите
Please take my number off of your list
Can you guys stop sending these please
Please stop all communication with me
do not communicate with me
please cease all communications immediately
I never authorized you to text me
I do not authorize you to contact me
You don't have my permission
I withdraw my permission
My consent has been withdrawn, do not contact me
I'm revoking consent effective immediately
Consider this my opt out
consider this my notice to stop
Please opt me out of all future communications
opt me out of marketing please
I would like off your list
Please get my number off your list
do not ever call or text this number again
Never text this number again!!
Don't you dare text me again
Don't text here again
Stop sending texts to this phone
stop sending msgs
Stop messaging me, I am not interested in your product
Stop contacting me I'm not interested
stop all texts now
stop all contact
stop marketing to me
Stop advertising to me
stop soliciting me
do not solicit
No soliciting
no more of these texts
no more calls or texts
no more contact please
No further contact or messages
not interested. remove me.
not interested please stop texting me
I'm not interested in your offers, please remove my number
I don't want any more of these messages
I don't want you to contact me
we don't want you to call us again
I do not want you texting me
I don't want your promotional messages
I do not want marketing
I don't need your emails
I do not give you permission to text me
unsubscribe me asap
unsubscribe me immediately
Unsubscribe from text messages
Unsubscribe from all emails
please unsubscribe my email from your list
please unsubscribe this phone number
Unsubcribe please
unsubscribe thanks
Remove this phone number from your list
Remove my cell number
please remove from list
Please remove from your list
take off list
take this number off
Delete this contact
delete my contact info
please forget my phone number
Lose my email
End these texts
End all communication
Cancel all texts
Cancel notifications
Quit sending these
quit spamming me
Quit calling this number
quit all messages
please leave us alone
STAHP
stop pleaseeee
plsss stop
stop rn
stop ok
yes stop
yes, unsubscribe me
yeah stop
I SAID STOP TEXTING ME
told you to stop texting me
asking you again to stop texting me
last warning stop texting me
STOP or I will call my lawyer
don't call me
I am not Bob. Stop texting me
Your shop is bad. Please remove me from your list
Stop texting me, I never asked for this
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
don't stop
never stop
I'll stop by tomorrow
Could you stop the delivery
Please stop my order
stop payment
How do I unsubscribe?
can I unsubscribe later?
why did I get unsubscribed
I didn't unsubscribe
I don't want to unsubscribe
Please do not remove me
please don't take me off your list
keep me on your list
keep texting me
I want to start receiving messages
Stop texting and driving
stop worrying
stop selling this?
bus stop
last stop
non stop
can't stop
Don't stop me now
he said stop
they will not stop calling
the app stops working
my tracker stopped
I stopped receiving emails
why did you stop sending me emails?
you stopped texting me
have you stopped the newsletter
please cancel my order
cancel the booking
cancel that order
I'd like to cancel
end of season sale?
when does the sale end
weekend
I quit my job
remove the item
remove my card
Remove my review
delete my account?
delete my review
revoke my order
I give my consent
I agree
please contact me
Text me
Call me back
don't call, email me
do not call me at work
don't email me at this address, use my other one
only email me
no text received
no message came
I got no texts
I don't get your messages
I didn't get the email
I'm not receiving texts
I have not received any emails
I do not have your number
I don't want to lose my messages
I don't want this color
I don't want to wait
more texts please
no more questions
is there no more stock
No
No thank you
Not now
maybe later
leave me a voicemail
take me to the list
Put me on the list
forget it
I forgot my number
lost my number
My number changed
one stop shop
stop sign
stop watch
doorstop
stop at the office
Stop the music
Stop motion
is it enough?
good enough
enough for two?
halt die Klappe?
Was kostet das?
wie kann ich mich abmelden?
ich habe keine Nachrichten bekommen
nicht abmelden
no quiero darme de baja
no cancelen mi pedido
precio más bajo
no recibí mensajes
no me llega el mensaje
não recebi mensagens
quero receber mensagens
plus de promotions
ne vous arrêtez pas
voglio ricevere messaggi
the unsubscribe button does not work
STOP button does not work
What does reply STOP mean?
Do I have to text STOP?
stop? no
stop... just kidding
Please do not disturb
don't bother
Don't send it
Don't send the parcel
Don't ship
don't forget me
nobody contacted me
You never called me
You never text me
He never texts me
never received a call
I never got the messages
I never gave my address
I didn't sign up yet
I refuse to pay
I withdraw my complaint
I object to the fee
Access denied
where do I give consent
you have my permission
will I be removed from the list?
I was removed from the list
I unsubscribed by mistake, please resubscribe me
please resubscribe me
you blocked me
don't block me
go away, rain
I got lost
get off at the stop
Tell me when to stop
say when
I can see messages
stop showing prices in dollars
stop shipping to Hawaii?
could you stop by and text me
would you mind calling me
can you email me
can you contact me again
can you take me to the list
Could you cancel my order
can you turn on notifications
how can I turn off notifications?
turn off the lights
updates?
no updates
no updates yet
no promotions?
send me offers
contact us
messages
my number
call
Stop texting me? No
Stop texting me, call me
Do not text me. Email me
Stop texting me unless it is urgent
If it is late, stop texting me
Stop texting me... just kidding
He said: stop texting me
Stop. I am driving
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
