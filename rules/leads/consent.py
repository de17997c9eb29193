"""Whether what somebody writes, or the button that somebody chooses, ends or resumes messages to them.

Decoders of ingest/leads/sources ask. In this order: lists of phrases; the two questions; how a text becomes
words, and lists become the patterns that words must match.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import groupby

from rules.leads.lead_events import NOTIFICATIONS, OFF, ON
from rules.leads.objections import without_marks

CONSENT_CHARACTERS_MAX = 160  # of an SMS; a longer text says more than that alone
# Phrases are parted by commas, and compared without case, accents and punctuation.
STOP_WORDS = """
stop,stop all,stopall,stop it all,stop message,stop sending,stop contacting me,stop messaging me
stop texting me,unsubscribe,unsubscribe me,unsub,opt out,optout,opt me out,remove me,take me off
i want to unsubscribe,i want to opt out,i would like to unsubscribe,i'd like to unsubscribe
do not contact me,don't contact me,do not message me,don't message me,do not text me,don't text me,parar
pare,descadastrar,me descadastre,desinscrever,nao quero mais,quero sair,quero me descadastrar
cancelar inscricao,baja,darme de baja,dar de baja,dame de baja,no molestar,quiero darme de baja,desuscribir
desuscribirme,desuscribirse,cancelar suscripcion,anular suscripcion,stopp,abmelden,abbestellen,abmeldung
ich mochte mich abmelden,arret,arreter,desabonner,se desabonner,me desabonner,je veux me desabonner
desabonnement,desinscription,disiscriviti,disiscrivimi,annulla iscrizione,afmelden,uitschrijven,meld me af
wypisz,wypisz mnie,rezygnuje,стоп,отписаться,отпишите меня,отписка,відписатися,abonelikten cik
abonelikten çık,berhenti,berhenti langganan,berhenti berlangganan,إلغاء الاشتراك,الغاء الاشتراك,إيقاف,أوقف
توقف,قف,הסר,הסירו,הסר אותי,להסרה,रोकें,बंद करें,退订,退訂,取消订阅,取消訂閱,停止,配信停止,停止してください
수신거부,수신 거부,구독 취소,중지,stop spamming,stop spamming me,stop sending this,stop sending these
stop sending me this,stop sending me these,leave me alone,dont contact me,dont message me,dont text me
unsuscribe,unsubcribe,unsubscribe all,unsubscribe from all,unsubscribe from this,darse de baja
dejar de recibir,no recibir mas,no me escriban,no me escriban mas,no me contacten,no me contacten mas
arretez,ne plus recevoir,se desinscrire,me desinscrire,desinscrire,desinscrivez-moi,cease,cease and desist
desist,do not send anything,don't send anything,do not send me anything,stop sending anything
stop sending me anything,don't send me anything,send me nothing,no more of this,no more of these
quiero cancelar la suscripcion,revoco mi consentimiento,retiro mi consentimiento,borren mi numero
borra mi numero,eliminen mi numero,elimina mi numero,quiten mi numero,quitenme de la lista
eliminenme de la lista,borrenme de la lista,dejen de escribirme,deja de escribirme,dejen de molestar
dejen de enviarme mensajes,no me molesten,no me molesten mas,no me manden mas mensajes
no me envien mas mensajes,deseo darme de baja,dejenme en paz,revogo meu consentimento
retiro meu consentimento,remova meu numero,apague meu numero,exclua meu numero,remover meu numero
tire meu numero da lista,me tire da lista,me remova da lista,me tirem da lista,parem de me mandar mensagens
pare de me mandar mensagens,parem de enviar mensagens,nao me contatem,nao me contate mais
nao me mande mais mensagens,nao me mandem mais mensagens,nao me enviem mais mensagens,nao me incomodem
me deixe em paz,me deixem em paz,je retire mon consentement,je revoque mon consentement,supprimez mon numero
effacez mon numero,retirez mon numero,retirez-moi de la liste,retirez-moi de votre liste
enlevez-moi de la liste,ne m'envoyez plus de messages,ne me contactez plus,ne m'ecrivez plus
laissez-moi tranquille,arretez de m'ecrire,arretez de me contacter,je souhaite me desabonner
je voudrais me desabonner,ich widerrufe meine einwilligung,hiermit widerrufe ich meine einwilligung
einwilligung widerrufen,löschen sie meine nummer,lösche meine nummer,löscht meine nummer
meine nummer löschen,streichen sie mich von der liste,nehmen sie mich von der liste,nicht mehr anschreiben
schreibt mir nicht mehr,schreiben sie mir nicht mehr,kontaktieren sie mich nicht mehr
kontaktiert mich nicht mehr,lasst mich in ruhe,lassen sie mich in ruhe,ich will mich abmelden
revoco il consenso,revoco il mio consenso,ritiro il consenso,ritiro il mio consenso,cancellate il mio numero
cancella il mio numero,rimuovete il mio numero,rimuovi il mio numero,toglietemi dalla lista
cancellatemi dalla lista,rimuovetemi dalla lista,rimuovimi,non scrivetemi piu,non contattatemi piu
lasciatemi in pace,ik trek mijn toestemming in,verwijder mijn nummer,haal me van de lijst
stuur me geen berichten meer,laat me met rust,ik wil me afmelden,cofam zgode,cofam zgodę,wycofuje zgodę
wycofuję zgodę,usuń mój numer,usuńcie mój numer,nie piszcie do mnie,nie pisz do mnie,отзываю согласие
я отзываю согласие,отзываю своё согласие,удалите мой номер,удалите меня из списка,уберите меня из списка
больше не пишите мне,не присылайте мне сообщения,не беспокойте меня,оставьте меня в покое
прекратите рассылку,видаліть мій номер,не пишіть мені,відкликаю згоду,numarami silin,numaramı silin
beni listeden cikarin,beni listeden çıkarın,bana mesaj gondermeyin,bana mesaj göndermeyin,bana mesaj atmayin
bana mesaj atmayın,iznimi geri aliyorum,iznimi geri alıyorum,hapus nomor saya,jangan hubungi saya
jangan hubungi saya lagi,jangan kirim pesan lagi,saya ingin berhenti berlangganan,احذف رقمي,احذفوا رقمي
لا تراسلني,لا ترسل لي رسائل,أسحب موافقتي,אל תשלחו לי הודעות,מחקו את המספר שלי,תמחקו את המספר שלי
मेरा नंबर हटाएं,मुझे मैसेज मत भेजो,删除我的号码,请删除我的号码,不要再联系我,不要再发消息,不要再聯絡我
撤回同意,撤销同意,配信を停止してください,もう送らないでください,連絡しないでください,番号を削除してください
同意を撤回します,연락하지 마세요,문자 보내지 마세요,동의 철회,xóa số của tôi,đừng nhắn tin nữa,ลบเบอร์ของฉัน
หยุดส่งข้อความ,nicht mehr kontaktieren,nicht mehr schreiben,zrezygnuj,не пишите мне,больше не пишите
停止推广,停止促销,stop everything,i want out,no spam,discontinue,stop it,stop this,stop that,stop these
stop those,stop them,stop them all,quit it,stop text,stop txt,stopsms,stop sms,stoptext,sotp,stpo,stoop
unsubscribed,un subscribe,desubscribe,unlist me,unenroll,unenroll me,disenroll me,deregister me,delete me
forget me,block me,go away,fuck off,f off,piss off,get lost,halt,terminate,no texts,no texting,no calls
no emails,no marketing,no ads,no contact,no calls or texts,cancel subscription,cancel my subscription
end my subscription,do not consent,i asked you to stop,i have asked you to stop,i ve asked you to stop
you must stop,you need to stop,you have to stop,no me mandes mensajes,no me mandes mas mensajes
no me manden mensajes,ya no me manden mensajes,no me escribas,no me escribas mas,no me envies mensajes
no me envies mas mensajes,no me llamen,no me llames,no me llames mas,do not solicit,no soliciting
no solicitation,leave us alone,stahp,dejen de molestarme,deja de molestarme,deja de mandarme mensajes
dejen de mandarme mensajes,dejen de llamarme,quiero que me den de baja,denme de baja,quitame de tu lista
quitame de la lista,sacame de la lista,sacame de tu lista,saquenme de la lista,eliminar mi numero
borrar mi numero,quitar mi numero,retirar mi consentimiento,retirar consentimiento,revocar mi consentimiento
detente,detener,ya no quiero,basta ya,ya basta,nao me mande mensagem,nao me mande mensagens
nao me mande mais mensagem,nao me envie mensagens,nao me envie mais mensagens,para de me mandar mensagem
para de me mandar mensagens,pare de me mandar mensagem,pare de me enviar mensagens
parem de me enviar mensagens,nao me ligue,nao me ligue mais,nao me liguem mais,quero sair da lista
quero sair dessa lista,me remova,me exclua da lista,me tira da lista,excluir meu numero
retirar meu consentimento,arrete,arrete ca,arretez ca,arretez de m'envoyer des messages
arrete de m'envoyer des messages,arretez de m'appeler,ne m'envoyez plus rien,ne m'envoyez plus de sms
ne m'envoyez plus d'e-mails,ne m'appelez plus,ne me contacte plus,ne m'ecris plus,desabonnez-moi
desabonne-moi,retirez-moi,supprimez-moi,plus de messages svp,retirer mon consentement,hor auf,horen sie auf
hort auf,aufhoren,hor auf mir zu schreiben,hort auf mir zu schreiben,horen sie auf mir zu schreiben
melden sie mich ab,meldet mich ab,melde mich ab,melden sie mich bitte ab,entfernen sie mich
entfernen sie meine nummer,entfernt meine nummer,loschen sie mich,loscht mich,nehmt mich aus der liste
nehmen sie mich aus der liste,nehmt mich von der liste,austragen,tragt mich aus,tragen sie mich aus
ich mochte keine nachrichten mehr,ich mochte keine nachrichten mehr erhalten,ich will keine nachrichten mehr
ich will keine werbung,ich mochte keine werbung,ich mochte keine werbung mehr,ich will keine werbung mehr
ich widerspreche der werbung,ich widerspreche der nutzung meiner daten,rufen sie mich nicht mehr an
ruft mich nicht mehr an,schreiben sie mir nicht,kontaktieren sie mich nicht,non mi scrivete
non mi scrivete piu,non mi contattate,non mi contattate piu,non mi chiamate piu,toglimi dalla lista
toglietemi,cancellami,cancellatemi,rimuovetemi,smettila di scrivermi,smettetela di scrivermi,smettetela
smettila,revocare il consenso,stop met appen,stop met sturen,schrijf me uit,schrijf mij uit,meld mij af
geen berichten meer aub,niet meer appen,stuur mij geen berichten meer,bel me niet meer,nie chce wiadomosci
nie chce wiecej wiadomosci,przestancie,prosze przestac,wypiszcie mnie,usun mnie z listy,usuncie mnie z listy
nie dzwoncie do mnie,не пишите,не пишите мне больше,не звоните мне,не звоните,не звоните больше,отпишите
хватит,хватит писать,хватит спама,прекратите,прекратите писать,перестаньте писать,перестаньте,удалите меня
отключите рассылку,不要再发了,别再发了,不要发短信,别再联系我,もう送らないで,送らないでください,그만 보내세요
그만 보내주세요,停止推送,停止接收,プロモーションを停止,dừng khuyến mãi,hủy đăng ký,หยุด,หยุดโปรโมชัน
หยุดโปรโมชั่น,ยกเลิกการสมัคร
"""

# A verb and a thing: "stop promotions", "unsubscribe from your newsletter", "Werbung abbestellen".
STOP_VERBS = """
stop,end,cancel,quit,cease,unsubscribe,unsubscribe me,unsub,opt out,optout,opt me out,turn off,disable
remove me,take me off,no more,no further,discontinue,terminate,halt,suspend,do not send,don't send,dont send
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
this list,txt,txts,text messages,mails,calls
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
i'd like you to,i wish you to,i asked you to,i have asked you to,i've asked you to,i need you to
i ask you to,i am asking you to,i'm asking you to,i request you to,i request that you,i demand that you
you must,you have to,i said,i told you to,i hereby,hereby,let me,can you,could you,would you,will you,can u
could u,would u,will u,can you guys,can someone,could someone,can y'all,would you mind,do you mind
you need to,u need to,you guys need to,you should,i request to,i am requesting to,i'm requesting to
i request,i am requesting that you,i'm requesting that you,i demand you,i demand to,i insist that you
i order you to,i already told you to,i already asked you to,i keep asking you to,i have told you to
i've told you to,i've already told you to,i've already asked you to,told you to,asked you to,asking you to
asking you again to,i am asking you again to,i'm asking you again to,i choose to,i elect to,i am choosing to
we want to,we want you to,we wish to,we would like to,we'd like to,we'd like you to,we would like you to
we need you to,we ask you to,we request that you,this is a request to,this is a formal request to
this is my request to,this is my final request to,this is notice to,i want y'all to,i beg you to
i'm begging you to
"""
# Sentences of which a piece may vary, in plain words (_plain_words): {} is one of the pieces below.
STOP_SENTENCES = (
    "{unsubscribe}(?: {me})?(?: (?:from|of))?(?: {everything})*(?: (?:{messages}|{lists}))?",
    "(?:i )?(?:am |m )?(?:object|objecting) to (?:direct )?{messages}",
    "(?:i )?(?:want|wish|need|(?:would|d) like) (?:off|off of|out of) {lists}",
    "consider (?:this (?:as )?my {optout}|me (?:unsubscribed|opted out|removed))",
    "{stop} sending(?: {me}| {any})* (?:{rubbish}|{messages}|{whom}|{any})(?: to {whom})?{again}",
    (
        "(?:stop|stop it|stop this|{stop} {writing} {whom}) (?:or|before) (?:i|we)(?: (?:will|ll"
        "|am going to))? (?:report|block|sue|call (?:my|the|a) (?:lawyer|attorney|police|fcc)"
        "|take legal action)(?: (?:you|this|this number))?"
    ),
    "{stop} with (?:{any} )*{messages}{again}",
    "(?:reply )?stop ?(?:to|2) ?(?:end|stop|unsubscribe|opt out|cancel|quit|[0-9]+)",
    (
        "(?:stop|unsubscribe|opt out|optout)(?: (?:stop|unsubscribe|end|quit|cancel|remove|please|opt out"
        "|optout|now))+"
    ),
    (
        "(?:can i |could i |may i |i need to |i want to |i ask to |i request to )?be (?:unsubscribed"
        "|removed|taken off|taken out|opted out)(?: (?:from|of|off) (?:{lists}|{any}))?"
    ),
    "(?:i |we )?(?:am |m |are |re )?{revoke} (?:{my} )*{consent}(?: {purpose})?",
    "(?:my |our )?{consent} (?:is |has been |was )?(?:revoked|withdrawn)",
    "(?:my |our )?consent (?:is |has been |was )?(?:denied|refused)",
    "(?:i |we )?{not} (?:consent|give (?:you )?(?:my |any )?{consent})(?: {purpose})?",
    (
        "(?:i |we )?(?:never|did not|didn t|didnt|have not|haven t|have never) (?:consented|consent"
        "|agreed|agree|opted in|opt in|gave|give|given|signed up|sign up)(?: you)?(?: my"
        "| any)?(?: {consent})? ?{purpose}"
    ),
    (
        "(?:i |we )?(?:never|did not|didn t|didnt|have not|haven t|have never) (?:consented|consent"
        "|(?:gave|give|given)(?: you)?(?: my| any)? {consent})"
    ),
    (
        "(?:i |we )?(?:refuse|deny|decline|do not give|don t give)(?: to give)?(?: my| any"
        "| all)? {consent}(?: {purpose})?"
    ),
    "you {not} have (?:my |any |our )?{consent}(?: {purpose})?",
    (
        "(?:i |we )?(?:{not}|never) (?:authorize|authorized|authorise|authorised|allow|allowed|permit"
        "|permitted) you to {write} {whom}{again}"
    ),
    "you (?:are|re) not (?:authorized|authorised|allowed|permitted) to {write} {whom}{again}",
    "(?:i |we )?{not} want you(?: guys)? (?:to )?(?:{write}|{writing}) {whom}{again}",
    "(?:i |we )?{not} need (?:{any} )*{messages}(?: from you)?{again}",
    (
        "{remove} (?:(?:my|our|this) {number}|me|us)(?: {off} (?:{lists}|everything|all|here|this|these"
        "|all of this))?{again}"
    ),
    "(?:{remove}|take) {off} {lists}{again}",
    (
        "{remove} (?:all )?(?:of )?(?:my|our) (?:personal )?(?:data|info|information|details"
        "|records?)(?: {off} {lists})?"
    ),
    "(?:lose|forget) (?:my|our|this) (?:(?:{kind} )?number|email)",
    "take (?:my|our|this) {number} (?:off|out)(?: (?:of )?{lists})?",
    (
        "(?:{remove}|take|get|strike|keep|leave) (?:me|us|(?:my|our|this) {number})(?: (?:off|from"
        "|out))?(?: of)? (?:{lists}|this|these)"
    ),
    "{never} {write}(?: {whom})?{again}",
    "{never} (?:write|write to|bother|spam|harass|pester|bug|disturb|ping|annoy|dm) {whom}{again}",
    "{never} {write} or {write}(?: {whom})?{again}",
    (
        "{never} send(?: {me})?(?: {any})*(?: (?:any|any more|anymore|anything|these|this|those|stuff"
        "|{rubbish}|{messages}))(?: else)?(?: to {whom})?{again}"
    ),
    "{stop} (?:all )?{writing}(?: (?:to )?{whom})?{again}",
    (
        "(?:cease and desist|desist|refrain) (?:from )?(?:all )?(?:{writing}|{messages})(?:"
        " (?:to )?{whom})?{again}"
    ),
    (
        "(?:i |we )?{not} (?:want|wish|care|need|like) to (?:hear from you|be {written}(?: by you)?"
        "|be on {lists}){again}"
    ),
    (
        "(?:i |we )?{not} (?:want|wish|care|need|like)(?: to)? (?:{receive} (?:{any} )*(?:{messages}"
        "|{rubbish})|(?:receive|get) (?:{any} )*{these})(?: from you)?{again}"
    ),
    "(?:i|we) no longer (?:want|need|wish|wish for) (?:{any} )*(?:{messages}|{any})",
    "(?:i|we) {not} (?:want|need) (?:any of )?(?:these|those|this|it) (?:anymore|any more|any longer)",
    (
        "(?:i |we )?(?:would|d)(?: rather| prefer| really)* not (?:to )?(?:{receive}"
        " (?:{any} )*(?:{messages}|{any})|be {written})(?: from you)?{again}"
    ),
    "stop (?:marketing|advertising|promoting)(?: to)? {whom}{again}",
    "stop {receive} (?:{any} )*(?:{messages}|{any})(?: from you)?{again}",
)
SENTENCE_PIECES = {
    "unsubscribe": (
        "(?:(?:i )?(?:unsubscribe|unsub|opt out|optout)|opt (?:me|us) out|(?:i |we )?(?:am |m "
        "|are )?(?:unsubscribing|opting out))"
    ),
    "optout": "(?:opt out|request to (?:stop|unsubscribe|opt out|be removed)|notice to stop|revocation)",
    "me": "(?:me|us|my number|this number|our number|my email|this email)",
    "everything": "(?:all|everything|any|this|these|it|you|your|of)",
    "stop": "(?:stop|quit|cease|halt|discontinue|end|enough)",
    "receive": "(?:receive|get|see|have|receiving|getting|seeing|to receive|to get)",
    "any": "(?:this|that|these|those|your|ur|the|all|any|more|further|such|of|other|future|anything|stuff)",
    "these": "(?:these|those|this|any|any more|more|anything|stuff)",
    "off": "(?:from|off|off of|out of|out|of)",
    "revoke": (
        "(?:revoke|revoking|withdraw|withdrawing|rescind|rescinding|retract|retracting|cancel|take back)"
    ),
    "my": "(?:my|all|any|the|prior|previous|express|our)",
    "consent": "(?:consent|permission|authorization|authorisation|opt in)",
    "not": "(?:do not|don t|dont|no longer|don t ever|did not|didn t|didnt)",
    "never": (
        "(?:(?:do not|don t|dont) you dare|do not|don t|dont|never|do not ever|no longer|you"
        " (?:may|must|should|can) not)(?: you)?(?: ever| even)?"
    ),
    "rubbish": "(?:crap|shit|bullshit|junk|garbage|rubbish|nonsense|stuff|trash|spam)",
    "purpose": (
        "(?:(?:to|for) (?:(?:you )?(?:to )?(?:contact|text|message|email|call|contacting"
        "|texting|messaging) (?:me|us)|(?:be|being) {written}|{messages}|text|this|these"
        "|any of this|any of these)(?: from you)?)"
    ),
    "messages": (
        "(?:(?:receive|receiving|get|send|me|any|all|your|ur|direct|these|those|this|the"
        "|further|more|marketing|promotional|promo|text|sms|email|whatsapp|automated|unwanted"
        "|spam|future|other) )*(?:messages|message|msgs|texts|txts|emails|e mails|mails"
        "|marketing|notifications|communications|communication|sms|calls|promotions|promos|ads"
        "|newsletters?|offers|updates|alerts|contact|mailings?|texting|contacting)"
    ),
    "remove": "(?:remove|delete|erase|drop|unsubscribe|unlist|take off|scrub|purge|exclude)",
    "kind": "(?:phone|cell|cell phone|mobile|mobile phone|telephone|contact|whatsapp)",
    "number": (
        "(?:(?:{kind} )?number|numbers|phone|cell|cell phone|email|e mail|email address|name"
        "|contact|contact details|contact info|contact information)"
    ),
    "lists": (
        "(?:(?:(?:of|your|the|this|that|all|any|these|mailing|contact|marketing|calling|call"
        "|text|texting|sms|email|phone|distribution|whatsapp|messaging|subscriber|subscription"
        "|campaign) )*(?:list|lists|database|databases|system|systems|records|contacts"
        "|mailings?|newsletters?|campaigns?|distribution|subscriptions?|text messages|messages"
        "|texts|emails|notifications))"
    ),
    "whom": (
        "(?:me|us|here|(?:my|our|this|the) (?:{kind} )?(?:number|phone|cell|mobile|line|email"
        "|inbox|address)|my {kind})"
    ),
    "write": (
        "(?:contact|text|txt|message|msg|email|mail|call|phone|ring|text message|communicate with|solicit)"
    ),
    "writing": (
        "(?:contacting|texting|txting|texing|messaging|msging|emailing|e mailing|mailing"
        "|calling|phoning|writing|bothering|spamming|harassing|pinging|annoying|pestering"
        "|bugging|hounding|disturbing|whatsapping|dming|blowing up|communicating with|soliciting)"
    ),
    "written": "(?:contacted|texted|messaged|emailed|called|spammed|bothered|disturbed)",
    "later": (
        "(?:again|anymore|any more|ever|ever again|any longer|further|from now on|in future"
        "|in the future|going forward|already|at all|period|asap|immediately|right now|at once"
        "|today)"
    ),
    "again": "(?: {later})*",
}
POLITE = """
please,pls,plz,kindly,thanks,thank you,now,immediately,por favor,obrigado,obrigada,gracias,bitte,danke,svp
s'il vous plait,merci,per favore,grazie,alstublieft,пожалуйста,спасибо,lutfen,tolong,من فضلك,not interested
i am not interested,i'm not interested,wrong number,this is spam,for the last time,just,ok,okay,hi,hello,hey
hola,oi,hallo,bonjour,ciao,again,anymore,any more,no thanks,no thank you,no longer interested
i am no longer interested,i'm no longer interested,wrong person,not me,you have the wrong number
you've got the wrong number,you got the wrong number,i'm good,this is harassment,i never signed up for this
i did not sign up for this,i didn't sign up for this,i never signed up,yo,dude,bro,yes,yeah,yep,rn
effective immediately,last warning,final warning,final notice,for the second time,for the third time
for the hundredth time,you people,you idiots,i don't want them,i do not want them,ffs,omg,wtf,ty,thx,already
asap,right now,at once,hey there,hi there,hello there,sir,guys
"""
FILLERS = """
sending,receiving,getting,to receive,me,us,my,you,your,the,these,those,this,all,any,further,more,from,of,to
for,with,ur,or,via,de,as,ya,aux,os,das,dos,mais,mas,enviar,enviarme,receber,recibir,todas,todos,las,los,sus,mis,mir,mehr
senden,schicken,zusenden,von,die,alle,weitere,weiteren,recevoir,des,les,vos,mes,la,di,le,i,piu,ricevere,tutte,все,получать,semua
"""
# Words in a button's id that carry no meaning: btn_stop_2 means `stop`.
_PROGRAMS_WORDS = "btn button id payload action reply quick cmd command key value option choice"
PROGRAMS_WORDS = frozenset(_PROGRAMS_WORDS.split())
# A clause with one of these beside "stop texting me" takes something of it back, or tells of it.
RESERVE = re.compile(
    r"^(?:no|nope|not really|never ?mind|nvm|please|just)$"
    r"|^(?:please |just )*"
    r"(?:text|call|email|message|write|contact|whatsapp|use|send|keep|start|continue|wait)\b"
    r"|\b(?:but|unless|until|till|except|only|if|when|while|instead|kidding|joking|jk|start|subscribe|continue"
    r"|how|what does|what happens|order|parcel|delivery"
    r"|(?:he|she|they|who|customers?|people) (?:say|says|said))\b"
)
CONSENT_CLAUSE = re.compile(r"[.,;:!?…\n\r()\[\]\"|/¡¿]+|\s[-–—]\s")
UNSUBSCRIBE = ("unsubscribe", "unsubscribed", "unsubscribing")
EXPLETIVE = re.compile(r"\b(?:f\W*u?\W*c?\W*k?ing?|freaking?|frigging?|damn|goddamn|bloody)\b")
STRETCHED = re.compile(r"([^\W\d_])\1{2,}")  # "stoppp"
# "S T O P", "S.T.O.P.", "S_T_O_P"
SPACED_OUT = re.compile(r"(?<![^\W_])(?:[^\W\d_][\W_]+){2,}[^\W\d_](?![^\W_])")


def consent_in(text: str) -> Mapping[str, str]:
    """Return {"notifications": "off" or "on"} for what somebody wrote, if it says that; else {}.

    "Stop!", "Please stop these promotions" and "Keine Werbung mehr" say it; "stop by tomorrow", "don't stop"
    and "I don't want to stop your messages" do not. Each of several clauses must say so, or be polite. Beside
    a whole request, such as "stop texting me", any other may stand that takes nothing of it back ("I am not
    Bob"). A request may be put as a question ("Can you stop texting me?"). The English words are those that
    carriers and Twilio prescribe, and what the FCC calls any reasonable means (47 CFR 64.1200(a)(10)). Other
    languages have their usual ones, and Meta's labels of the button "Stop promotions".
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
    """Return OFF or ON, if a text says that. words: phrase -> its meaning."""
    if len(text) > CONSENT_CHARACTERS_MAX:
        return None
    text = _folded(text)
    by_letters = {_letters(phrase): phrase for phrase in words} if SPACED_OUT.search(text) else {}
    text = SPACED_OUT.sub(lambda found: f" {by_letters.get(_letters(found[0]), found[0])} ", text)
    plain = map(_clause_words, CONSENT_CLAUSE.split(text))
    clauses = [clause for clause in plain if _without_politeness(clause)]
    if clauses and _without_politeness(clauses[0]) == "no":  # "No. Stop."
        del clauses[0]
    meanings = [_meaning_of_clause(clause, words) for clause in clauses]
    others = [clause for clause, meaning in zip(clauses, meanings, strict=True) if meaning is None]
    if others:  # "I am not Bob. Stop texting me": what stands beside a whole request need not say it, too
        said = [clause for clause, meaning in zip(clauses, meanings, strict=True) if meaning]
        if ON in meanings or any(map(RESERVE.search, others)) or not any(map(_is_whole_request, said)):
            return None
    return next(filter(None, meanings), None) if len({*meanings} - {None}) == 1 else None


def _is_whole_request(clause: str) -> bool:
    """Return whether a clause that says "stop" says of what: "stop texting me", and not "stop" alone."""
    sentence = _BEFORE_SENTENCE.sub("", clause)
    return any(
        _stop_sentence().fullmatch(each) or _stop_pattern().fullmatch(each)
        for each in (clause, sentence, _without_politeness(sentence))
        if len(each.split()) > 1 or each.startswith("unsub")
    )


def _meaning_of_clause(clause: str, words: Mapping[str, str]) -> str | None:
    """Return OFF or ON, if that is all that a clause says. clause: as _plain_words returns it."""
    meaning = _meaning_of_phrase(_without_politeness(clause), words)
    # "Don't call me again": the last word is no politeness here.
    return meaning or (OFF if _is_stop_sentence(_BEFORE_SENTENCE.sub("", clause)) else None)


def _meaning_of_phrase(phrase: str, words: Mapping[str, str]) -> str | None:
    """Return OFF or ON, if that is all that a phrase says. phrase: as _without_politeness returns it."""
    if phrase in words:
        return words[phrase]
    if _stop_pattern().fullmatch(phrase) or _stop_sentence().fullmatch(phrase):
        return OFF
    if _start_pattern().fullmatch(phrase):
        return ON
    word, sentence = _BEFORE_WORD.sub("", phrase), _BEFORE_SENTENCE.sub("", phrase)
    if words.get(_without_politeness(word)) == OFF or (sentence != phrase and _is_stop_sentence(sentence)):
        return OFF
    halves = [_without_politeness(half) for half in phrase.split(" and ")]
    return OFF if len(halves) > 1 and {_meaning_of_phrase(half, words) for half in halves} == {OFF} else None


def _is_stop_sentence(sentence: str) -> bool:
    """Return whether a sentence says "stop" also behind "I want to": to quit may be something else."""
    has_thing = _stop_pattern().fullmatch(sentence) and not sentence.startswith(("quit ", "no "))
    is_phrase = sentence.startswith("stop sending ") and sentence in CHOICE_MEANINGS
    return bool(has_thing or _stop_sentence().fullmatch(sentence) or is_phrase)


def _without_politeness(plain: str) -> str:
    """Return a clause's words without the polite phrases at its ends. plain: as _plain_words returns them."""
    return _POLITE_ENDS.sub("", f" {plain} ").strip()


def _plain_words(text: str) -> str:
    """Return a text's words, parted by single blanks: without case, accents, emoji and invisible characters.

    A word that is repeated is there once: "stop stop stop" is "stop".
    """
    words = re.findall(r"[^\W_]+", EXPLETIVE.sub("", _folded(text)))
    return " ".join(_spelt(word) for word, _ in groupby(words))


def _clause_words(text: str) -> str:
    """Return a clause's words as _plain_words does, or without the polite phrases at its ends.

    That is if a word ends one and begins the next: "I did not sign up for this this is harassment".
    """
    plain = _plain_words(text)
    words = re.findall(r"[^\W_]+", EXPLETIVE.sub("", _folded(text)))
    trimmed = _plain_words(_without_politeness(" ".join(map(_spelt, words))))
    return trimmed if len(trimmed) < len(_without_politeness(plain)) else plain


def _spelt(word: str) -> str:
    """Return a word; what somebody has mistyped for "unsubscribe" as that: unsuscribe, unsubcribe."""
    if not word.startswith("uns") or word in UNSUBSCRIBE:
        return word
    return (get_close_matches(word, UNSUBSCRIBE, n=1, cutoff=0.84) or [word])[0]


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


# These three take a tenth of a second to compile: who reads no text does without.
@cache
def _stop_pattern() -> re.Pattern[str]:
    return _verb_and_thing(STOP_VERBS, STOP_FRAMES)


@cache
def _start_pattern() -> re.Pattern[str]:
    return _verb_and_thing(START_VERBS)


@cache
def _stop_sentence() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_filled(sentence)})" for sentence in STOP_SENTENCES))


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
_BEFORE_WORD = re.compile(rf"^(?:{_any_of(BEFORE_WORDS)} )+")
_BEFORE_SENTENCE = re.compile(rf"^(?:{_any_of(BEFORE_SENTENCES, POLITE)} )+")
