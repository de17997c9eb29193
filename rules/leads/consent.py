"""Whether what somebody writes, or the button that somebody chooses, ends or resumes messages to them.

Decoders of ingest/leads/sources ask. In this order: lists of phrases; the two questions; how a text becomes
words, and lists become the patterns that words must match.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import groupby

from rules.leads.lead_events import NOTIFICATIONS, OFF, ON
from rules.leads.objections import without_marks

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
cease,cease and desist,desist,do not send anything,don't send anything,do not send me anything
stop sending anything,stop sending me anything
don't send me anything,send me nothing,no more of this,no more of these,quiero cancelar la suscripcion
revoco mi consentimiento,retiro mi consentimiento,borren mi numero,borra mi numero,eliminen mi numero
elimina mi numero,quiten mi numero,quitenme de la lista,eliminenme de la lista,borrenme de la lista
dejen de escribirme,deja de escribirme,dejen de molestar,dejen de enviarme mensajes,no me molesten
no me molesten mas,no me manden mas mensajes,no me envien mas mensajes,deseo darme de baja,dejenme en paz
revogo meu consentimento,retiro meu consentimento,remova meu numero,apague meu numero,exclua meu numero
remover meu numero,tire meu numero da lista,me tire da lista,me remova da lista,me tirem da lista
parem de me mandar mensagens,pare de me mandar mensagens,parem de enviar mensagens,nao me contatem
nao me contate mais,nao me mande mais mensagens,nao me mandem mais mensagens,nao me enviem mais mensagens
nao me incomodem,me deixe em paz,me deixem em paz,je retire mon consentement,je revoque mon consentement
supprimez mon numero,effacez mon numero,retirez mon numero,retirez-moi de la liste,retirez-moi de votre liste
enlevez-moi de la liste,ne m'envoyez plus de messages,ne me contactez plus,ne m'ecrivez plus
laissez-moi tranquille,arretez de m'ecrire,arretez de me contacter,je souhaite me desabonner
je voudrais me desabonner,ich widerrufe meine einwilligung,hiermit widerrufe ich meine einwilligung
einwilligung widerrufen,löschen sie meine nummer,lösche meine nummer,löscht meine nummer,meine nummer löschen
streichen sie mich von der liste,nehmen sie mich von der liste,nicht mehr anschreiben,schreibt mir nicht mehr
schreiben sie mir nicht mehr,kontaktieren sie mich nicht mehr,kontaktiert mich nicht mehr,lasst mich in ruhe
lassen sie mich in ruhe,ich will mich abmelden,revoco il consenso,revoco il mio consenso,ritiro il consenso
ritiro il mio consenso,cancellate il mio numero,cancella il mio numero,rimuovete il mio numero
rimuovi il mio numero,toglietemi dalla lista,cancellatemi dalla lista,rimuovetemi dalla lista,rimuovimi
non scrivetemi piu,non contattatemi piu,lasciatemi in pace,ik trek mijn toestemming in,verwijder mijn nummer
haal me van de lijst,stuur me geen berichten meer,laat me met rust,ik wil me afmelden,cofam zgode,cofam zgodę
wycofuje zgodę,wycofuję zgodę,usuń mój numer,usuńcie mój numer,nie piszcie do mnie,nie pisz do mnie
отзываю согласие,я отзываю согласие,отзываю своё согласие,удалите мой номер,удалите меня из списка
уберите меня из списка,больше не пишите мне,не присылайте мне сообщения,не беспокойте меня
оставьте меня в покое,прекратите рассылку,видаліть мій номер,не пишіть мені,відкликаю згоду,numarami silin
numaramı silin,beni listeden cikarin,beni listeden çıkarın,bana mesaj gondermeyin,bana mesaj göndermeyin
bana mesaj atmayin,bana mesaj atmayın,iznimi geri aliyorum,iznimi geri alıyorum,hapus nomor saya
jangan hubungi saya,jangan hubungi saya lagi,jangan kirim pesan lagi,saya ingin berhenti berlangganan
احذف رقمي,احذفوا رقمي,لا تراسلني,لا ترسل لي رسائل,أسحب موافقتي,אל תשלחו לי הודעות,מחקו את המספר שלי
תמחקו את המספר שלי,मेरा नंबर हटाएं,मुझे मैसेज मत भेजो,删除我的号码,请删除我的号码,不要再联系我,不要再发消息
不要再聯絡我,撤回同意,撤销同意,配信を停止してください,もう送らないでください,連絡しないでください
番号を削除してください,同意を撤回します,연락하지 마세요,문자 보내지 마세요,동의 철회,xóa số của tôi
đừng nhắn tin nữa,ลบเบอร์ของฉัน,หยุดส่งข้อความ
nicht mehr kontaktieren,nicht mehr schreiben,zrezygnuj,не пишите мне,больше не пишите,停止推广,停止促销
stop everything,i want out,no spam,discontinue
停止推送,停止接收,プロモーションを停止,dừng khuyến mãi,hủy đăng ký,หยุด,หยุดโปรโมชัน,หยุดโปรโมชั่น,ยกเลิกการสมัคร
"""

# A verb and a thing: "stop promotions", "unsubscribe from your newsletter", "Werbung abbestellen".
STOP_VERBS = """
stop,end,cancel,quit,cease,unsubscribe,unsubscribe me,unsub,opt out,optout,opt me out,turn off,disable
remove me,take me off,no more,no further,discontinue,do not send,don't send,dont send
i do not want,i don't want,i no longer want
i do not wish,i don't wish,i no longer wish,do not want,don't want,no longer want,no recibir,parar
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
deals,campaigns,spam,communications,communication,contact,mailings,whatsapp,mailing list,the list,your list
this list
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
WRITTEN_STOP_WORDS = "cancel,end,end all,quit,revoke,remove,sair,cancelar,remover,alto,salir,إلغاء"
WRITTEN_START_WORDS = "start,resume,iniciar,voltar,alta,anmelden"
START_VERBS = """
start,resume,restart,subscribe,resubscribe,opt in,optin,turn on,retomar,reativar,reanudar,reactivar
fortsetzen,reprendre,riprendi,hervatten
"""
# "Keine Werbung mehr": the words stand around the thing.
STOP_FRAMES = ("keine {} mehr", "geen {} meer", "pas de {}")
# "Reply STOP", "I said stop": these words before one of a list change nothing.
BEFORE_WORDS = """
reply,reply with,replying,text,txt,sms,type,send,sending,answer,i said,i already said,i have said,i told you
i told you to,responda,envia,antworte
"""
# "I wish to unsubscribe": these words before a verb with a thing, or before a sentence, change nothing.
BEFORE_SENTENCES = """
i want to,i wanna,i wish to,i would like to,i'd like to,i need to,i want you to,i would like you to
i'd like you to,i wish you to,i asked you to,i have asked you to
i've asked you to,i need you to,i ask you to,i am asking you to,i'm asking you to,i request you to
i request that you,i demand that you,you must,you have to,i said,i told you to,i hereby,hereby,let me
"""
# Sentences of which a piece may vary, in plain words (_plain_words): {} is one of the pieces below.
STOP_SENTENCES = (
    "{unsubscribe}(?: {me})?(?: (?:from|of))?(?: {everything})*(?: (?:{messages}|{lists}))?",
    "(?:i )?(?:am |m )?(?:object|objecting) to (?:direct )?{messages}",
    "i want (?:off|off of|out of) {lists}",
    "stop sending(?: (?:me|us|this|that|these|your|all|any|more))* {rubbish}",
    "(?:stop|stop it|stop this) or i (?:will|ll) (?:report|block|sue) (?:you|this|this number)",
    "be (?:unsubscribed|removed|taken off|opted out)(?: (?:from|of) {lists})?",
    "(?:i )?(?:am |m )?{revoke} (?:{my} )*{consent}(?: {purpose})?",
    "(?:my )?{consent} (?:is |has been )?(?:revoked|withdrawn|denied)",
    "i {not} (?:consent|give (?:my|any) {consent})(?: {purpose})?",
    "you {not} have (?:my |any )?{consent}(?: {purpose})?",
    "{remove} (?:my|this) {number}(?: (?:from|off|off of|out of) {lists})?",
    "(?:lose|forget) (?:my|this) (?:{kind} )?number",
    "take (?:my|this) {number} off(?: (?:of )?{lists})?",
    "(?:{remove}|take|get|strike) (?:me|us)(?: (?:off|from|out))?(?: of)? {lists}",
    "{never} {write}(?: {whom})?{again}",
    "{never} (?:write|write to|bother|spam|harass) {whom}{again}",
    "{never} {write_or_call} or {write_or_call} {whom}{again}",
    "{never} (?:call|disturb|ping|annoy) {whom} {later}{again}",
    "(?:stop|quit|cease) {writing}(?: (?:to )?{whom})?{again}",
    "i {not} (?:want|wish) to (?:hear from you|be {written}(?: by you)?|be on {lists}){again}",
)
SENTENCE_PIECES = {
    "unsubscribe": "(?:(?:i )?(?:unsubscribe|unsub|opt out|optout)|opt (?:me|us) out"
    "|(?:i )?(?:am |m )?(?:unsubscribing|opting out))",
    "me": "(?:me|us|my number|this number|my email|this email)",
    "everything": "(?:all|everything|any|this|these|it|you|your|of)",
    "revoke": "(?:revoke|revoking|withdraw|withdrawing|rescind|rescinding|retract|retracting)",
    "my": "(?:my|all|any|the|prior|previous|express)",
    "consent": "(?:consent|permission|authorization|opt in)",
    "not": "(?:do not|don t|dont|no longer)",
    "never": "(?:do not|don t|dont|never)(?: you)?(?: ever)?",
    "rubbish": "(?:crap|shit|bullshit|junk|garbage|rubbish|nonsense|stuff|trash)",
    "write_or_call": "(?:{write}|call|phone)",
    "purpose": "(?:to|for) (?:(?:contact|text|message|email|call) me|be {written}|{messages})(?: from you)?",
    "messages": "(?:(?:receive|receiving|get|send|me|any|all|your|direct|these|further|more|marketing"
    "|promotional|text|sms|email|whatsapp) )*"
    "(?:messages|texts|emails|marketing|notifications|communications|sms|calls)",
    "remove": "(?:remove|delete|erase|drop|unsubscribe|unlist)",
    "kind": "(?:phone|cell|cell phone|mobile|mobile phone|telephone|contact|whatsapp)",
    "number": "(?:(?:{kind} )?number|email|email address|name|contact|contact details)",
    "lists": "(?:(?:of|your|the|this|that|all|any|these|mailing|contact|marketing|calling|call|text|texting"
    "|sms|email|phone|distribution|whatsapp) )+(?:list|lists|database|databases|system|records|contacts)",
    "whom": "(?:me|us|this number|my number)",
    "write": "(?:contact|text|message|msg|email|mail)",
    "writing": "(?:contacting|texting|messaging|emailing|mailing|calling|writing|bothering|spamming|harassing"
    "|pinging|annoying)",
    "written": "(?:contacted|texted|messaged|emailed|called)",
    "later": "(?:again|anymore|any more|ever|any longer|further|from now on|in future|in the future)",
    "again": "(?: {later})*",
}
POLITE = """
please,pls,plz,kindly,thanks,thank you,now,immediately,por favor,obrigado,obrigada,gracias,bitte,danke
svp,s'il vous plait,merci,per favore,grazie,alstublieft,пожалуйста,спасибо,lutfen,tolong,من فضلك
not interested,i am not interested,i'm not interested,wrong number,this is spam,for the last time
just,ok,okay,hi,hello,hey,hola,oi,hallo,bonjour,ciao,again,anymore,any more
"""
FILLERS = """
sending,receiving,getting,to receive,me,us,my,you,your,the,these,those,this,all,any,further,more,from,of,to
for,via,de,as,ya,aux,os,das,dos,mais,mas,enviar,enviarme,receber,recibir,todas,todos,las,los,sus,mis,mir,mehr
senden,schicken,zusenden,von,die,alle,weitere,weiteren,recevoir,des,les,vos,mes,la,di,le,i,piu,ricevere,tutte,все,получать,semua
"""
# Words in a button's id that carry no meaning: btn_stop_2 means `stop`.
_PROGRAMS_WORDS = "btn button id payload action reply quick cmd command key value option choice"
PROGRAMS_WORDS = frozenset(_PROGRAMS_WORDS.split())
CONSENT_CLAUSE = re.compile(r"[.,;:!?…\n\r()\[\]\"|/¡¿]+|\s[-–—]\s")
STRETCHED = re.compile(r"([^\W\d_])\1{2,}")  # "stoppp"
# "S T O P", "S.T.O.P.", "S_T_O_P"
SPACED_OUT = re.compile(r"(?<![^\W_])(?:[^\W\d_][\W_]+){2,}[^\W\d_](?![^\W_])")


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
    text = _folded(text)
    by_letters = {_letters(phrase): phrase for phrase in words} if SPACED_OUT.search(text) else {}
    text = SPACED_OUT.sub(lambda found: f" {by_letters.get(_letters(found[0]), found[0])} ", text)
    plain = map(_plain_words, CONSENT_CLAUSE.split(text))
    clauses = [clause for clause in plain if _without_politeness(clause)]
    if clauses and _without_politeness(clauses[0]) == "no":  # "No. Stop."
        del clauses[0]
    meanings = {_meaning_of_clause(clause, words) for clause in clauses}
    return meanings.pop() if len(meanings) == 1 else None


def _meaning_of_clause(clause: str, words: Mapping[str, str]) -> str | None:
    """Return OFF or ON, if that is all that a clause says. clause: as _plain_words returns it."""
    meaning = _meaning_of_phrase(_without_politeness(clause), words)
    # "Don't call me again": the last word is no politeness here.
    return meaning or (OFF if _is_stop_sentence(_BEFORE_SENTENCE.sub("", clause)) else None)


def _meaning_of_phrase(phrase: str, words: Mapping[str, str]) -> str | None:
    """Return OFF or ON, if that is all that a phrase says. phrase: as _without_politeness returns it."""
    if phrase in words:
        return words[phrase]
    if _STOP_PATTERN.fullmatch(phrase) or _STOP_SENTENCE.fullmatch(phrase):
        return OFF
    if _START_PATTERN.fullmatch(phrase):
        return ON
    word, sentence = _BEFORE_WORD.sub("", phrase), _BEFORE_SENTENCE.sub("", phrase)
    if words.get(_without_politeness(word)) == OFF or (sentence != phrase and _is_stop_sentence(sentence)):
        return OFF
    halves = [_without_politeness(half) for half in phrase.split(" and ")]
    return OFF if len(halves) > 1 and {_meaning_of_phrase(half, words) for half in halves} == {OFF} else None


def _is_stop_sentence(sentence: str) -> bool:
    """Return whether a sentence says "stop" also behind "I want to": to quit may be something else."""
    has_thing = _STOP_PATTERN.fullmatch(sentence) and not sentence.startswith(("quit ", "no "))
    is_phrase = sentence.startswith("stop sending ") and sentence in CHOICE_MEANINGS
    return bool(has_thing or _STOP_SENTENCE.fullmatch(sentence) or is_phrase)


def _without_politeness(plain: str) -> str:
    """Return a clause's words without the polite phrases at its ends. plain: as _plain_words returns them."""
    return _POLITE_ENDS.sub("", f" {plain} ").strip()


def _plain_words(text: str) -> str:
    """Return a text's words, parted by single blanks: without case, accents, emoji and invisible characters.

    A word that is repeated is there once: "stop stop stop" is "stop".
    """
    words = re.findall(r"[^\W_]+", _folded(text))
    return " ".join(word for word, _ in groupby(words))


def _folded(text: str) -> str:
    """Return a text without case, accents and invisible characters, and with stretched letters once."""
    folded = without_marks(unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()))
    return STRETCHED.sub(r"\1", folded)


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


def _filled(pattern: str) -> str:
    """Return a pattern with its pieces in it."""
    while "{" in pattern:
        pattern = pattern.format_map(SENTENCE_PIECES)
    return pattern


POLITE_PHRASES = _phrases(POLITE)
_POLITE_ENDS = re.compile(rf"^(?: {_any_of(POLITE)}(?= ))+|(?: {_any_of(POLITE)}(?= ))+ $")
CHOICE_MEANINGS = dict.fromkeys(_phrases(STOP_WORDS), OFF) | dict.fromkeys(_phrases(START_WORDS), ON)
TEXT_MEANINGS = (
    dict.fromkeys(_phrases(WRITTEN_STOP_WORDS), OFF)
    | dict.fromkeys(_phrases(WRITTEN_START_WORDS), ON)
    | CHOICE_MEANINGS
)
_STOP_SENTENCE = re.compile("|".join(f"(?:{_filled(sentence)})" for sentence in STOP_SENTENCES))
_BEFORE_WORD = re.compile(rf"^(?:{_any_of(BEFORE_WORDS)} )+")
_BEFORE_SENTENCE = re.compile(rf"^(?:{_any_of(BEFORE_SENTENCES, POLITE)} )+")
_STOP_PATTERN, _START_PATTERN = _verb_and_thing(STOP_VERBS, STOP_FRAMES), _verb_and_thing(START_VERBS)
