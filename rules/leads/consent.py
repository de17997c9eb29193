"""Whether what somebody writes, or the button that somebody chooses, ends or resumes messages to them.

Decoders of ingest/leads/sources ask. In this order: lists of phrases; the two questions; how a text becomes
words, and lists become the patterns that words must match.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import groupby

from rules.leads.objections import without_marks

OFF, ON = "off", "on"
NOTIFICATIONS = "notifications"
CONSENT_CHARACTERS_MAX = 80  # a longer text says more than that alone
# Phrases are parted by commas, and compared without case, accents and punctuation.
STOP_WORDS = """
stop,stop all,stopall,stop it all,stop message,stop sending,stop contacting me,stop messaging me
stop texting me,unsubscribe,unsubscribe me,unsub,opt out,optout,opt me out,remove me,take me off
i want to unsubscribe,i want to opt out,i would like to unsubscribe,i'd like to unsubscribe
do not contact me,don't contact me,do not message me,don't message me,do not text me,don't text me,parar
pare,descadastrar,me descadastre,desinscrever,nao quero mais,quero sair,quero me descadastrar
cancelar inscricao,baja,darme de baja,dar de baja,dame de baja,no molestar,quiero darme de baja
desuscribir,desuscribirme,desuscribirse,cancelar suscripcion,anular suscripcion,stopp,abmelden
abbestellen,abmeldung,ich mochte mich abmelden,arret,arreter,desabonner,se desabonner,me desabonner
je veux me desabonner,desabonnement,desinscription,disiscriviti,disiscrivimi,annulla iscrizione,afmelden
uitschrijven,meld me af,wypisz,wypisz mnie,rezygnuje,стоп,отписаться,отпишите меня,отписка,відписатися
abonelikten cik,abonelikten çık,berhenti,berhenti langganan,berhenti berlangganan,إلغاء الاشتراك
الغاء الاشتراك,إيقاف,أوقف,توقف,قف,הסר,הסירו,הסר אותי,להסרה,रोकें,बंद करें,退订,退訂,取消订阅,取消訂閱,停止,配信停止
停止してください,수신거부,수신 거부,구독 취소,중지,stop spamming,stop spamming me
stop sending this,stop sending these,stop sending me this,stop sending me these,leave me alone,dont contact me
dont message me,dont text me,unsuscribe,unsubcribe,unsubscribe all,unsubscribe from all,unsubscribe from this
darse de baja,dejar de recibir,no recibir mas,no me escriban,no me escriban mas,no me contacten
no me contacten mas,arretez,ne plus recevoir,se desinscrire,me desinscrire,desinscrire,desinscrivez-moi
nicht mehr kontaktieren,nicht mehr schreiben,zrezygnuj,не пишите мне,больше не пишите,停止推广,停止促销
停止推送,停止接收,プロモーションを停止,dừng khuyến mãi,hủy đăng ký,หยุด,หยุดโปรโมชัน,หยุดโปรโมชั่น,ยกเลิกการสมัคร
"""

# A verb and a thing: "stop promotions", "unsubscribe from your newsletter", "Werbung abbestellen".
STOP_VERBS = """
stop,end,cancel,quit,unsubscribe,unsubscribe me,unsub,opt out,optout,opt me out,turn off,disable
remove me,take me off,no more,do not send,don't send,dont send,i do not want,i don't want,i no longer want
no recibir,parar
pare,parem,cancelar,sair,desativar,interromper,nao quero,nao enviar,nao envie,nao enviem,detener
desactivar,anular,dejar de recibir,dejar de enviar,no quiero,no deseo,no enviar,no envien,no mas
darme de baja,stopp,stoppen,beenden,abbestellen,abmelden,arreter,arretez,arret,desactiver,ne plus
je ne veux plus,n'envoyez plus,se desabonner,me desabonner,desabonner,interrompi,ferma,disattiva,annulla
cancella,basta,non voglio,uitschrijven,afmelden,stopzetten,zatrzymaj,wylacz,стоп,остановить,остановите
отключить,отписаться,durdur,iptal et,hentikan,berhenti,إيقاف,أوقف,توقف,إلغاء,הפסק,रोकें,बंद करें,停止,取消
중지
"""
THINGS = """
messages,msgs,promotion,promotions,promo,promos,promotional,offers,marketing,ads,adverts,advertising
advertisements,notification,notifications,updates,news,newsletter,newsletters,texts,sms,emails,alerts
deals,campaigns,spam,communications,mailings,whatsapp,mailing list,the list,your list,this list
mensagens,promocao,promocoes,ofertas,publicidade,propaganda,propagandas,anuncios,notificacoes,novidades
mensajes,promocion,promociones,publicidad,notificaciones,novedades,avisos,werbung,nachrichten
werbenachrichten,angebote,aktionen,benachrichtigungen,offres,publicite,publicites,pub,pubs,messaggi
promozioni,offerte,pubblicita,notifiche,berichten,promoties,aanbiedingen,reclame,meldingen,wiadomosci
promocje,reklamy,рекламу,рекламы,рассылку,рассылки,рассылок,сообщения,акции,уведомления,promosyonlari
promosyonları,mesajlari,mesajları,bildirimleri,promosi,notifikasi,iklan,الرسائل,العروض,الترويجية
الإعلانات,الإشعارات,הודעות,प्रचार,प्रमोशन,संदेश,促销,推广,广告,消息,광고,프로모션,알림
"""
START_WORDS = "unstop,subscribe,subscribe me,resubscribe,opt in,optin,opt me in,inscrever,suscribir"
# Words that only count in a text that somebody wrote: they may also be the label of a step in a dialogue.
WRITTEN_STOP_WORDS = "cancel,end,quit,revoke,sair,cancelar,remover,alto,salir,إلغاء"
WRITTEN_START_WORDS = "start,resume,iniciar,voltar,alta,anmelden"
START_VERBS = """
start,resume,restart,subscribe,resubscribe,opt in,optin,turn on,retomar,reativar,reanudar,reactivar
fortsetzen,reprendre,riprendi,hervatten
"""
# "Keine Werbung mehr": the words stand around the thing.
STOP_FRAMES = ("keine {} mehr", "geen {} meer", "pas de {}")
POLITE = """
please,pls,plz,kindly,thanks,thank you,now,immediately,por favor,obrigado,obrigada,gracias,bitte,danke
svp,s'il vous plait,merci,per favore,grazie,alstublieft,пожалуйста,спасибо,lutfen,tolong,من فضلك
just,ok,okay,hi,hello,hey,hola,oi,hallo,bonjour,ciao,again,anymore,any more
"""
FILLERS = """
sending,receiving,getting,to receive,me,us,my,your,the,these,those,this,all,any,further,more,from,of,to
for,via,de,as,ya,aux,os,das,dos,mais,mas,enviar,enviarme,receber,recibir,todas,todos,las,los,sus,mis,mir,mehr
senden,schicken,zusenden,von,die,alle,weitere,weiteren,recevoir,des,les,vos,mes,la,di,le,i,piu,ricevere,tutte,все,получать,semua
"""
# Words in a button's id that carry no meaning: btn_stop_2 means `stop`.
_PROGRAMS_WORDS = "btn button id payload action reply quick cmd command key value option choice"
PROGRAMS_WORDS = frozenset(_PROGRAMS_WORDS.split())
CONSENT_CLAUSE = re.compile(r"[.,;:!?…\n\r()\[\]\"|/¡¿]+|\s[-–—]\s")
# "S T O P", "S.T.O.P.", "S_T_O_P"
SPACED_OUT = re.compile(r"[\W_]*(?:[^\W\d_][\W_]+){2,}[^\W\d_][\W_]*")


def consent_in(text: str) -> Mapping[str, str]:
    """Return {"notifications": "off" or "on"} for what somebody wrote, if it says that alone; else {}.

    "Stop!", "Please stop these promotions" and "Keine Werbung mehr" say it; "stop by tomorrow", "don't stop"
    and "I don't want to stop your messages" do not. Each of several clauses must say so, or be polite. The
    English words are those that carriers and Twilio prescribe. Other languages have their usual ones, and
    Meta's labels of the button "Stop promotions".
    """
    return _consent(_meaning_of_text(text, TEXT_MEANINGS))


def consent_in_choice(labels: Iterable[str], names: Iterable[str]) -> Mapping[str, str]:
    """Return the same for a button that somebody chose; OFF comes before ON if its texts say both.

    labels: its texts, such as "Stop promotions". names: its names in a program, such as STOP_PROMO. Words
    that are also the label of a step in a dialogue ("Cancel", "Voltar") do not count here.
    """
    meanings = {_meaning_of_text(label, CHOICE_MEANINGS) for label in labels}
    short_names = (name for name in names if len(name) <= CONSENT_CHARACTERS_MAX)
    phrases = {_without_politeness(_words_of_name(name)) for name in short_names}
    meanings |= {_meaning_of_phrase(phrase, CHOICE_MEANINGS) for phrase in phrases}
    return _consent(OFF if OFF in meanings else ON if ON in meanings else None)


def _consent(meaning: str | None) -> Mapping[str, str]:
    return {NOTIFICATIONS: meaning} if meaning else {}


def _meaning_of_text(text: str, words: Mapping[str, str]) -> str | None:
    """Return OFF or ON, if that is all that a text says. words: phrase -> its meaning."""
    if len(text) > CONSENT_CHARACTERS_MAX:
        return None
    if SPACED_OUT.fullmatch(text):
        by_letters = {_letters(phrase): meaning for phrase, meaning in words.items()}
        return by_letters.get(_letters(text))
    phrases = [_without_politeness(_plain_words(clause)) for clause in CONSENT_CLAUSE.split(text)]
    phrases = [phrase for phrase in phrases if phrase]
    if phrases[:1] == ["no"]:  # "No. Stop."
        del phrases[0]
    meanings = {_meaning_of_phrase(phrase, words) for phrase in phrases}
    return meanings.pop() if len(meanings) == 1 else None


def _meaning_of_phrase(phrase: str, words: Mapping[str, str]) -> str | None:
    """Return OFF or ON, if that is all that a phrase says. phrase: as _without_politeness returns it."""
    if phrase in words:
        return words[phrase]
    if _STOP_PATTERN.fullmatch(phrase):
        return OFF
    return ON if _START_PATTERN.fullmatch(phrase) else None


def _without_politeness(plain: str) -> str:
    """Return a clause's words without the polite phrases at its ends. plain: as _plain_words returns them."""
    return _POLITE_ENDS.sub("", f" {plain} ").strip()


def _plain_words(text: str) -> str:
    """Return a text's words, parted by single blanks: without case, accents, emoji and invisible characters.

    A word that is repeated is there once: "stop stop stop" is "stop".
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    words = re.findall(r"[^\W_]+", without_marks(folded))
    return " ".join(word for word, _ in groupby(words))


def _letters(text: str) -> str:
    """Return the letters of a text without what stands between them; a letter that is repeated is there once.

    "S T O P A L L", which does not show where a word ends, has the letters of "stop all".
    """
    return "".join(letter for letter, _ in groupby(_plain_words(text).replace(" ", "")))


def _words_of_name(name: str) -> str:
    """Return the words of a program's name: STOP_PROMO_2, stopPromo and btn-stop-promo are `stop promo`."""
    words = _plain_words(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).split()
    return " ".join(word for word in words if word.isalpha() and word not in PROGRAMS_WORDS)


def _phrases(*lists: str) -> frozenset[str]:
    phrases = (phrase for text in lists for phrase in re.split(r"[,\n]", text.strip()))
    return frozenset(map(_plain_words, phrases))


def _any_of(*lists: str) -> str:
    return f"(?:{'|'.join(sorted(_phrases(*lists), key=len, reverse=True))})"


def _verb_and_thing(verbs: str, frames: Iterable[str] = ()) -> re.Pattern[str]:
    """Return a pattern that matches one verb with at least one thing, or a frame around a thing.

    Fillers may stand anywhere.
    """
    thing, filler = _any_of(THINGS), _any_of(FILLERS, POLITE)
    other = f"(?:{thing}|{filler})"
    # The lookahead requires a thing somewhere. Then comes exactly one verb, among things and fillers.
    patterns = [f"(?=(?:.* )?{thing}(?: |$))(?:{other} )*{_any_of(verbs)}(?: {other})*"]
    framed = (frame.format(f"(?:{filler} )*{thing}") for frame in frames)
    patterns += [f"(?:{filler} )*{pattern}(?: {filler})*" for pattern in framed]
    return re.compile("|".join(patterns))


POLITE_PHRASES = _phrases(POLITE)
_POLITE_ENDS = re.compile(rf"^(?: {_any_of(POLITE)}(?= ))+|(?: {_any_of(POLITE)}(?= ))+ $")
CHOICE_MEANINGS = dict.fromkeys(_phrases(STOP_WORDS), OFF) | dict.fromkeys(_phrases(START_WORDS), ON)
TEXT_MEANINGS = (
    dict.fromkeys(_phrases(WRITTEN_STOP_WORDS), OFF)
    | dict.fromkeys(_phrases(WRITTEN_START_WORDS), ON)
    | CHOICE_MEANINGS
)
_STOP_PATTERN, _START_PATTERN = _verb_and_thing(STOP_VERBS, STOP_FRAMES), _verb_and_thing(START_VERBS)
