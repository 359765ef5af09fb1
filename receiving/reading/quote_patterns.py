"""Patterns of quotes: the words with which mail programs introduce, head and sign messages, in their languages.

The patterns of introductions and signatures have a sample each, by which tests/receiving/test_quotes.py tests the row.
All patterns are in lower case.
"""

# Verbs of introductions, in front of the colon at the end or of the name of the sender.
WROTE = {
    "wrote": "On Wed, Aug 5, 2026 at 7:35 AM Shop <shop@example.com> wrote:",
    "writes": "Shop <shop@example.com> writes:",
    "you wrote": "On Aug 5, 2026 you wrote:",
    "a écrit": "Le mer. 5 août 2026 à 07:35, Shop <shop@example.com> a écrit :",
    "avez écrit": "Le 5 août 2026 à 07:35, vous avez écrit :",
    "nous a dit": "Le 5 août 2026 à 07:35, Shop nous a dit :",
    "escribió": "El mié, 5 ago 2026 a las 7:35, Shop (<shop@example.com>) escribió:",
    "ha scritto": "Il giorno mer 5 ago 2026 alle ore 07:35 Shop <shop@example.com> ha scritto:",
    "escreveu": "Em qua., 5 de ago. de 2026 às 07:35, Shop <shop@example.com> escreveu:",
    "het volgende geschreven": "Op 5 aug. 2026 om 07:35 heeft Shop <shop@example.com> het volgende geschreven:",
    "schreef": "Op wo 5 aug 2026 om 07:35 schreef Shop <shop@example.com>:",
    "geschrieben": "Am 05.08.2026 um 07:35 hat Shop <shop@example.com> geschrieben:",
    "folgendes geschrieben": "Shop <shop@example.com> hat am 5. August 2026 um 07:35 folgendes geschrieben:",
    "schrieben sie": "Am Mittwoch, 5. August 2026, 07:35:00, schrieben Sie:",
    "kirjoitti": "ke 5. elok. 2026 klo 7.35 Shop (shop@example.com) kirjoitti:",
    "napisał": "W dniu 2026-08-05 07:35:00 użytkownik Shop <shop@example.com> napisał:",
    "napisała": "W dniu 5.08.2026 o 07:35, Shop napisała:",
    "napisał(a)": "śr., 5 sie 2026 o 07:35 Shop <shop@example.com> napisał(a):",
    "pisze": "W dniu 5.08.2026 o 07:35, Shop pisze:",
    "napsal": "Dne 5. 8. 2026 v 7:35 Shop napsal:",
    "napsala": "Dne 5. 8. 2026 v 7:35 Shop napsala:",
    "napsal(a)": "st 5. 8. 2026 v 7:35 odesílatel Shop <shop@example.com> napsal(a):",
    "napísal": "Dňa 5. 8. 2026 o 7:35 Shop napísal:",
    "napísala": "Dňa 5. 8. 2026 o 7:35 Shop napísala:",
    "napísal(a)": "st 5. 8. 2026 o 7:35 Shop <shop@example.com> napísal(a):",
    "napísal/a": "5. augusta 2026 o 7:35 Shop <shop@example.com> napísal/a:",
    "írta": "2026. 08. 05. 7:35 keltezéssel, Shop írta:",
    "a scris": "În mie., 5 aug. 2026 la 07:35, Shop <shop@example.com> a scris:",
    "написал": "5 авг. 2026 г. 7:35 пользователь Shop <shop@example.com> написал:",
    "написала": "05.08.2026 7:35, Shop написала:",
    "написал(а)": "5 авг. 2026 г., в 7:35, Shop <shop@example.com> написал(а):",
    "писал": "5 авг. 2026 г. 7:35, Shop писал:",
    "писала": "5 авг. 2026 г. 7:35, Shop писала:",
    "писал(а)": "5 августа 2026 г., 7:35:00, Shop <shop@example.com> писал(а):",
    "вы писали": "Вы писали 5 августа 2026 г., 7:35:00:",
    "пишет": "05.08.2026 7:35, Shop пишет:",
    "пише": "ср, 5 серп. 2026 р. о 07:35 Shop <shop@example.com> пише:",
    "написав": "5 серп. 2026 р. о 07:35 Shop <shop@example.com> написав:",
    "написав(-ла)": "5 серп. 2026 р. о 07:35 Shop написав(-ла):",
    "написа": "На ср, 5.08.2026 г. в 7:35 Shop <shop@example.com> написа:",
    "је написао/ла": "сре, 5. авг 2026. у 07:35 Shop <shop@example.com> је написао/ла:",
    "je napisao/la": "sri, 5. kol 2026. u 07:35 Shop <shop@example.com> je napisao/la:",
    "napisao je": "sri, 5. kol 2026. u 07:35 Shop <shop@example.com> napisao je:",
    "napisala je": "sri, 5. kol 2026. u 07:35 Shop <shop@example.com> napisala je:",
    "je napisao": "Dana 5.8.2026. u 7:35, Shop je napisao:",
    "je napisala": "Dana 5.8.2026. u 7:35, Shop je napisala:",
    "napisal": "Dne 5. 08. 26 ob 07:35 je Shop napisal:",
    "napisal(-a)": "Dne 5. 08. 26 ob 07:35 je Shop napisal(-a):",
    "napisala": "V V sre., 5. avg. 2026 ob 07:35 je oseba Shop <shop@example.com> napisala:",
    "şunu yazdı": "Shop <shop@example.com>, 5 Ağu 2026 Çar, 07:35 tarihinde şunu yazdı:",
    "şunları yazdı": "Shop <shop@example.com> (5 Ağu 2026 07:35) şunları yazdı:",
    "yazdı": "5.08.2026 07:35 tarihinde Shop yazdı:",
    "έγραψε": "Στις Τετ 5 Αυγ 2026 στις 7:35 π.μ., ο χρήστης Shop <shop@example.com> έγραψε:",
    "כתב": "ב-5 באוג׳ 2026, בשעה 7:35, Shop <shop@example.com> כתב:",
    "כתבה": "ב-5 באוג׳ 2026, בשעה 7:35, Shop <shop@example.com> כתבה:",
    "כתב/ה": "ב-05/08/2026 7:35, Shop כתב/ה:",
    "כתבו": "ב-05/08/2026 7:35, Shop כתבו:",
    "كتب": "في ٥ أغسطس ٢٠٢٦ ٧:٣٥، Shop كتب:",
    "كتب/ت": "في 05/08/2026 7:35، Shop كتب/ت:",
    "كتب/كتبت": "في 05/08/2026 7:35، Shop كتب/كتبت:",
    "كتبت": "في 5 أغسطس 2026 7:35، Shop كتبت:",
    "نوشت": "در تاریخ چهارشنبه ۵ اوت ۲۰۲۶، ۷:۳۵ Shop <shop@example.com> نوشت:",
    "ने लिखा": "बुध, 5 अग॰ 2026 को 7:35 am बजे को Shop <shop@example.com> ने लिखा:",
    "のメール": "2026/08/05 7:35、Shop <shop@example.com>のメール:",
    "のメッセージ": "2026/08/05 7:35、Shopのメッセージ:",
    "書きました": "2026/08/05 7:35 に Shop さんは書きました:",
    "書き込みました": "Shop さんが 2026年8月5日 7:35 に書き込みました:",
    "写道": "Shop <shop@example.com> 于2026年8月5日周三 07:35写道：",
    "寫道": "Shop <shop@example.com> 於 2026年8月5日 週三 上午7:35寫道：",
    "작성": "2026년 8월 5일 (수) 오전 7:35, Shop <shop@example.com>님이 작성:",
    "작성한 메시지": "2026년 8월 5일 수요일 오전 7:35, Shop님이 작성한 메시지:",
    "쓴 글": "2026-08-05 오전 7:35에 Shop 이(가) 쓴 글:",
    "đã viết": "Vào Th 4, 5 thg 8, 2026 vào lúc 07:35 Shop <shop@example.com> đã viết:",
    "viết": "Vào 5/8/2026 07:35, Shop viết:",
    "เขียนว่า": "ในวันที่ พ. 5 ส.ค. 2026 เวลา 07:35 Shop <shop@example.com> เขียนว่า:",
    "เขียน": "5 ส.ค. 2569 07:35 Shop เขียน:",
    "menulis": "Pada tanggal Rab, 5 Agu 2026 pukul 07.35 Shop <shop@example.com> menulis:",
    "tulis": "Pada 5 Ogo 2026 07:35, Shop tulis:",
    "va escriure": "El dc., 5 d’ag. 2026 a les 7:35, Shop <shop@example.com> va escriure:",
    "ha escrit": "El 5/8/26 a les 7:35, Shop ha escrit:",
    "escribiu": "O 05/08/26 ás 07:35, Shop escribiu:",
    "idatzi du": "2026(e)ko abu. 5(a) (az.) 07:35, Shop (<shop@example.com>) idatzi du:",
    "rašė": "2026-08-05, tr, 07:35 Shop <shop@example.com> rašė:",
    "parašė": "2026-08-05 07:35, Shop parašė:",
    "rakstīja": "trešd., 2026. g. 5. aug., plkst. 07:35 Shop <shop@example.com> rakstīja:",
    "kirjutas": "Kuupäev K, 5. august 2026 kell 07:35 kirjutas Shop <shop@example.com>:",
    "skrifaði": "þann mið., 5. ágú. 2026 kl. 07:35 skrifaði Shop <shop@example.com>:",
    "skrev": "Den ons 5 aug. 2026 kl 07:35 skrev Shop <shop@example.com>:",
    "schrieb": "Am Mi., 5. Aug. 2026 um 07:35 Uhr schrieb Shop <shop@example.com>:",
    "تمت كتابة ما يلي بواسطة": "في الأربعاء، ٥ أغسطس ٢٠٢٦ في ٧:٣٥ تمت كتابة ما يلي بواسطة Shop:",
    "sinulat ni": "Noong Miy, Ago 5, 2026 nang 7:35 AM, sinulat ni Shop <shop@example.com>:",
}
# Words with a name behind them, in front of the colon.
BEFORE_NAMES = frozenset({
    "skrev", "schrieb", "schreef", "skrifaði", "kirjutas", "kirjoitti", "sinulat ni", "napisal", "napisala", "napsal",
    "تمت كتابة ما يلي بواسطة",
})  # fmt: skip
# Words in front of the name and address of the sender.
BEFORE_SENDERS = {
    "quoting": "Quoting Shop <shop@example.com>:",
    "zitat von": "Zitat von Shop <shop@example.com>:",
    "citat från": "Citat från Shop <shop@example.com>:",
    "citando": "Citando Shop <shop@example.com>:",
    "citando a": "Citando a Shop <shop@example.com>:",
    "citation de": "Citation de Shop <shop@example.com>:",
    "missatge de": "Missatge de Shop <shop@example.com> del dia dc., 5 d’ag. 2026 a les 7:35:",
    "wiadomość napisana przez": "Wiadomość napisana przez Shop <shop@example.com> w dniu 5 sie 2026, o godz. 07:35:",
    "cytowanie": "Cytowanie Shop <shop@example.com>:",
}
# Second persons, whose introductions may lack the time.
SECOND_PERSONS = frozenset({"you wrote", "schrieben sie", "avez écrit", "вы писали"})

# Words next to a verb in prose.
PRONOUNS = frozenset({
    "i", "he", "she", "they", "we", "ich", "er", "sie", "wir", "je", "il", "elle", "ils", "elles", "él", "ella",
    "yo", "ellos", "lui", "lei", "io", "ele", "ela", "eu", "hij", "zij", "ze", "ik", "wij", "han", "hon", "hun", "jag",
    "jeg", "vi", "hän", "ona", "oni", "já", "он", "она", "они", "я", "мы", "він", "вона", "вони",
})  # fmt: skip

# Labels of header blocks by language: of the sender, the date, the recipients, the subject, and others.
LABELS = {
    "en": "from; sent, date, sent on, sent at; to, cc, bcc; subject; reply-to, importance, attachments, organization",
    "de": "von; gesendet, datum, gesendet am, sendezeit; an, kopie, blindkopie, cc; betreff; antwort an, priorität, "
    "wichtigkeit, anlagen",
    "fr": "de, expéditeur, de la part de; envoyé, envoyé le, date, message du, le, date d'envoi; "
    "à, a, pour, destinataire, destinataires, cc, copie, copie à, cci; objet, sujet; répondre à, importance",
    "es": "de, remitente; enviado, enviado el, enviada, fecha, enviado a las, fecha de envío; "
    "para, a, cc, con copia a; asunto; responder a",
    "it": "da, mittente; inviato, data, data invio, inviata; a, cc, per conoscenza, per; oggetto; risposta, rispondi a",
    "pt": "de, remetente; enviado, enviada, enviada em, enviado em, data; para, cc, com cópia; assunto; responder para",
    "nl": "van, afzender; verzonden, datum, verstuurd, verzonden op; aan, cc, kopie; onderwerp; beantwoorden - aan",
    "sv": "från; skickat, datum, skickades, skickat den; till, kopia, kopia till; ämne, rubrik; svar till",
    "da": "fra; sendt, dato; til, cc, kopi; emne; svar til",
    "nb": "fra; sendt, dato; til, kopi, kopi til; emne; svar til",
    "fi": "lähettäjä; lähetetty, päivä, päivämäärä, pvm, lähetysaika; vastaanottaja, saaja, kopio; aihe; vastausosoite",
    "is": "frá; sent, dagsetning; til, afrit; efni",
    "et": "saatja, kellelt; saadetud, kuupäev, saatmisaeg; adressaat, saaja, kellele, koopia; teema",
    "lv": "no, sūtītājs; nosūtīts, datums; kam, kopija; tēma, temats",
    "lt": "nuo, siuntėjas; išsiųsta, data, išsiųsta el. paštu; kam, iki, gavėjas, kopija; tema",
    "pl": "od, nadawca; wysłano, wysłane, data, data wysłania; do, adresat, dw, kopia; temat",
    "cs": "od, odesílatel; odesláno, datum, posláno; komu, kopie; předmět, věc",
    "sk": "od, odosielateľ; odoslané, dátum; komu, pre, kópia; predmet",
    "sl": "od; poslano, datum; za, kp, komu; zadeva",
    "hr": "od, šalje, pošiljatelj; poslano, datum; za, prima, kopija; predmet, tema",
    "sr": "od, od koga, од; poslato, datum, послато, датум; za, за, kome, коме; predmet, naslov, наслов, тема, предмет",
    "hu": "feladó; elküldve, dátum, küldve; címzett, másolatot kap, másolat; tárgy",
    "ro": "de la, de, expeditor; trimis, data, dată, trimis la; către, catre, pentru, la; subiect",
    "bg": "от; изпратено, дата; до, копие; относно, тема",
    "ru": "от, от кого, отправитель; отправлено, дата, послано; кому, копия, получатель; тема",
    "uk": "від, від кого; надіслано, дата, відправлено; кому, копія; тема",
    "tr": "gönderen, kimden, kimden gönderildi; gönderildi, gönderme tarihi, tarih, gönderilme tarihi; "
    "alıcı, kime, bilgi; konu",
    "el": "από; στάλθηκε, ημερομηνία, εστάλη; προς, κοιν., κοινοποίηση; θέμα",
    "he": "מאת; נשלח, תאריך, נשלח בתאריך; אל, עותק, העתק; נושא, הנדון",
    "ar": "من; تم الإرسال, التاريخ, أرسلت, تاريخ الإرسال, تاريخ; إلى, الى, نسخة; الموضوع, موضوع",
    "fa": "از; ارسال شده, تاریخ; به, رونوشت; موضوع",
    "ja": "差出人, 送信者; 送信日時, 日付, 日時, 送信日; 宛先, cc; 件名",
    "zh-CN": "发件人; 发送时间, 日期, 时间, 发送日期; 收件人, 抄送; 主题",
    "zh-TW": "寄件者, 寄件人; 寄件日期, 日期, 傳送日期, 傳送時間, 發送時間; 收件者, 收件人, 副本; 主旨, 主題",
    "ko": "보낸 사람, 보낸사람, 발신; 보낸 날짜, 날짜, 보낸날짜, 보낸 시간; 받는 사람, 받는사람, 참조; 제목",
    "vi": "từ, người gửi; đã gửi, ngày, gửi, ngày gửi; tới, đến, người nhận; chủ đề, tiêu đề",
    "th": "จาก; ส่งเมื่อ, วันที่, ส่ง; ถึง, สำเนา; เรื่อง, หัวเรื่อง, หัวข้อ",
    "id": "dari; terkirim, tanggal, dikirim; kepada, untuk, ke; perihal, subjek, judul",
    "ms": "daripada; dihantar, tarikh; kepada; subjek, perkara",
    "ca": "de; enviat, enviat el, data, enviat a; per a, a, per; assumpte, tema",
    "gl": "de; enviado, data, enviado o; para; asunto",
    "eu": "nork, igorlea; bidalia, data, bidaltze-data; nori; gaia",
}
KINDS_OF_LABELS = ("from", "date", "to", "subject", "other")

# Texts between dashes above an earlier message.
SEPARATORS = """
original message; forwarded message; reply message; forwarded by; begin forwarded message; start of forwarded message;
ursprüngliche nachricht; ursprüngliche mail; original-nachricht; originalnachricht; weitergeleitete nachricht;
    original nachricht; ursprüngliche mitteilung; weitergeleitet von; antwort nachricht; originalmail; original-mail;
    ursprüngliche e-mail;
message d'origine; message original; message transféré; mail original; message initial; courriel original;
    transféré par; réacheminé par; message de réponse; e-mail d'origine; courriel d'origine;
mensaje original; mensaje reenviado; correo original; reenviado por; mensaje de respuesta;
messaggio originale; messaggio inoltrato; messaggio originario; inoltrato da; messaggio di risposta;
mensagem original; mensagem encaminhada; mensagem reencaminhada; encaminhado por; mensagem de resposta;
oorspronkelijk bericht; doorgestuurd; origineel bericht; oorspronkelijke bericht;
ursprungligt meddelande; vidarebefordrat meddelande; originalmeddelande; vidarebefordrat brev; vidarebefordrat mail;
oprindelig meddelelse; oprindelig besked; videresendt meddelelse; videresendt besked; original besked;
    oprindelig mail; videresendt e-mail;
opprinnelig melding; videresendt melding; original melding; opprinnelig e-post; videresendt e-post;
alkuperäinen viesti; välitetty viesti; edelleenlähetetty viesti;
upprunaleg skilaboð; upphafleg skilaboð; framsend skilaboð;
algne kiri; algne sõnum; edastatud kiri; edastatud sõnum;
sākotnējais ziņojums; pārsūtītā vēstule; oriģinālais ziņojums; pārsūtīts ziņojums;
originalus laiškas; pirminis laiškas; persiųstas laiškas; originalus pranešimas; persiunčiamas laiškas;
wiadomość oryginalna; oryginalna wiadomość; treść przekazanej wiadomości; wiadomość przekazana; przekazana wiadomość;
    wiadomość pierwotna; przesłana wiadomość;
původní zpráva; přeposlaná zpráva; původní e-mail; přeposláno;
pôvodná správa; preposlaná správa; preposlaná e-mailová správa;
izvirno sporočilo; posredovano sporočilo; prvotno sporočilo;
izvorna poruka; proslijeđena poruka; originalna poruka; prosleđena poruka; prvobitna poruka;
оригинална порука; прослеђена порука; изворна порука;
eredeti üzenet; továbbított üzenet; eredeti levél; továbbított levél; eredeti email;
mesaj original; mesaj inițial; mesaj redirecționat; mesaj iniţial; mesajul original; mesaj retrimis;
оригинално съобщение; препратено съобщение; първоначално съобщение; препратено писмо;
исходное сообщение; пересылаемое сообщение; пересылаемое письмо; исходное письмо; пересланное сообщение;
    перенаправленное сообщение; оригинальное сообщение; пересланное письмо; начало переадресованного сообщения;
вихідне повідомлення; переслане повідомлення; оригінальне повідомлення; початкове повідомлення;
    переадресоване повідомлення;
özgün mesaj; orijinal mesaj; orijinal ileti; iletilen mesaj; yönlendirilmiş ileti; özgün ileti; yönlendirilen mesaj;
αρχικό μήνυμα; προωθημένο μήνυμα; πρωτότυπο μήνυμα;
הודעה מקורית; הודעה שהועברה; הודעה מועברת; ההודעה המקורית;
الرسالة الأصلية; رسالة أصلية; رسالة معاد توجيهها; الرسالة المعاد توجيهها;
پیام اصلی; پیام هدایت شده; پیام ارسال‌شده;
元のメッセージ; 転送メッセージ; 転送されたメッセージ; 元のメール; オリジナルメッセージ; original message;
原始邮件; 转发的邮件; 原邮件; 邮件原件; 转发邮件; 转发邮件信息; 原始信息; 回复的原邮件; 原始郵件; 原始訊息; 轉寄郵件;
    轉寄的郵件; 轉寄訊息; 原本的郵件;
원본 메시지; 전달된 메시지; 원본 메일; 원본메시지; 전달된 메일;
thư gốc; thư đã chuyển tiếp; tin nhắn gốc; tin nhắn đã chuyển tiếp; thư được chuyển tiếp;
ข้อความต้นฉบับ; ข้อความที่ส่งต่อ; ต้นฉบับข้อความ; ข้อความเดิม;
pesan asli; pesan yang diteruskan; pesan terusan; pesan asal; mesej asal; mesej yang dimajukan; pesan diteruskan;
missatge original; missatge reenviat; mensaxe orixinal; mensaxe reenviada; jatorrizko mezua; birbidalitako mezua
"""
# Lines of Apple Mail above a forwarded message, without dashes.
FORWARDS = (
    "begin forwarded message", "anfang der weitergeleiteten nachricht", "anfang der weitergeleiteten e-mail",
    "début du message transféré", "début du message réexpédié", "inicio del mensaje reenviado",
    "comienza el mensaje reenviado", "inizio messaggio inoltrato", "início da mensagem encaminhada",
    "início da mensagem reencaminhada", "begin doorgestuurd bericht", "vidarebefordrat brev",
    "start på videresendt besked", "start på videresendt meddelelse", "videresendt melding",
    "start på videresendt melding", "välitetty viesti alkaa", "välitetty viesti", "początek przekazywanej wiadomości",
    "začátek přeposlané zprávy", "začiatok preposlanej správy", "počinje proslijeđena poruka",
    "továbbított levél kezdete", "továbbított üzenet kezdete", "începutul mesajului redirecționat",
    "începe mesajul redirecționat", "начало переадресованного сообщения", "початок листа, що пересилається",
    "iletilmiş mesajın başlangıcı", "iletilen ileti başlangıcı", "αρχή προωθημένου μηνύματος",
    "έναρξη προωθημένου μηνύματος", "תחילת ההודעה שהועברה", "بداية الرسالة المعاد توجيهها",
    "بدء الرسالة المُعاد إرسالها", "転送されたメッセージ", "下面是被转发的邮件", "开始转发的邮件", "以下是轉寄的郵件",
    "開始轉寄郵件", "전달된 메시지 시작", "전달된 메시지", "bắt đầu thư được chuyển tiếp", "เริ่มข้อความที่ส่งต่อ",
    "awal pesan terusan", "mulai pesan terusan", "inici del missatge reenviat",
)  # fmt: skip

# Lines that mail programs add below the text. "*" is the name of a device, "@" a text with one of DEVICES.
SIGNATURES = {
    "sent from my *": "Sent from my iPhone",
    "yahoo mail: search, organize, conquer": "Yahoo Mail: Search, Organize, Conquer",
    "sent from @": "Sent from Yahoo Mail on Android",
    "sent via @": "Sent via the Samsung Galaxy S21",
    "sent with @": "Sent with Proton Mail secure email.",
    "sent by @": "Sent by galaxy",
    "sent using @": "Sent using Zoho Mail",
    "get outlook for *": "Get Outlook for iOS",
    "from my @": "From my iPhone 6",
    "*from mobile": "Someone from mobile",
    "von meinem * gesendet": "Von meinem iPhone gesendet",
    "von @ gesendet": "Von Outlook Mobile gesendet",
    "gesendet von @": "Gesendet von Mail für Windows 10",
    "gesendet mit @": "Gesendet mit der GMX Mail App",
    "diese nachricht wurde von @ gesendet": "Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet",
    "meinem @ gesendet": "Von meinem Samsung Galaxy Smartphone gesendet",
    "outlook für * holen": "Outlook für iOS holen",
    "outlook für * beziehen": "Outlook für iOS beziehen",
    "outlook für * herunterladen": "Outlook für Android herunterladen",
    "envoyé de mon *": "Envoyé de mon iPhone",
    "envoyé depuis mon *": "Envoyé depuis mon téléphone",
    "envoyé depuis @": "Envoyé depuis l'application Mail Orange",
    "envoyé à partir de @": "Envoyé à partir de Outlook pour iOS",
    "envoyé à partir d'@": "Envoyé à partir d'Outlook pour Android",
    "envoyé avec @": "Envoyé avec Proton Mail",
    "télécharger outlook pour *": "Télécharger Outlook pour Android",
    "enviado desde mi *": "Enviado desde mi iPhone",
    "enviado desde @": "Enviado desde Outlook para Android",
    "enviado con @": "Enviado con Proton Mail",
    "obtener outlook para *": "Obtener Outlook para iOS",
    "inviato da @": "Inviato da iPhone",
    "inviato dal mio *": "Inviato dal mio telefono",
    "scarica outlook per *": "Scarica Outlook per Android",
    "ottieni outlook per *": "Ottieni Outlook per iOS",
    "enviado do meu *": "Enviado do meu iPhone",
    "enviado de @": "Enviado de um telefone Samsung Galaxy",
    "enviado do @": "Enviado do Outlook para Android",
    "enviado pelo @": "Enviado pelo Outlook para iOS",
    "obter o outlook para *": "Obter o Outlook para Android",
    "verzonden met @": "Verzonden met BlackBerry Work",
    "verzonden vanaf @": "Verzonden vanaf Outlook voor Android",
    "verstuurd vanaf mijn *": "Verstuurd vanaf mijn iPhone",
    "verzonden vanaf mijn *": "Verzonden vanaf mijn Samsung-apparaat",
    "verzonden via @": "Verzonden via Outlook voor iOS",
    "outlook voor * downloaden": "Outlook voor Android downloaden",
    "skickat från min *": "Skickat från min iPhone",
    "skickat från @": "Skickat från Outlook för Android",
    "hämta outlook för *": "Hämta Outlook för iOS",
    "sendt fra min *": "Sendt fra min iPhone",
    "sendt fra @": "Sendt fra Outlook til Android",
    "hent outlook til *": "Hent Outlook til iOS",
    "få outlook for *": "Få Outlook for iOS",
    "lähetetty @": "Lähetetty iPhonesta",
    "hanki outlook for *": "Hanki Outlook for iOS",
    "sent úr @": "Sent úr iPhone",
    "saadetud minu @": "Saadetud minu iPhone'ist",
    "nosūtīts no mana *": "Nosūtīts no mana iPhone",
    "išsiųsta iš mano *": "Išsiųsta iš mano iPhone",
    "wysłane z @": "Wysłane z iPhone'a",
    "wysłane z mojego *": "Wysłane z mojego telefonu",
    "wysłano z @": "Wysłano z Outlook dla systemu Android",
    "pobierz outlook dla *": "Pobierz Outlook dla systemu iOS",
    "odesláno z @": "Odesláno z iPhonu",
    "odesláno z mého *": "Odesláno z mého telefonu",
    "získat outlook pro *": "Získat Outlook pro Android",
    "odoslané z @": "Odoslané z iPhonu",
    "odoslané z môjho *": "Odoslané z môjho telefónu",
    "poslano z @": "Poslano z iPhona",
    "poslano s @": "Poslano s mog iPhonea",
    "poslano s mog *": "Poslano s mog telefona",
    "poslato sa @": "Poslato sa mog iPhone-a",
    "elküldve az @": "Elküldve az iPhone-omról",
    "az iphone-omról küldve": "Az iPhone-omról küldve",
    "trimis de pe @": "Trimis de pe iPhone-ul meu",
    "изпратено от @": "Изпратено от моя iPhone",
    "отправлено с @": "Отправлено с iPhone",
    "отправлено из @": "Отправлено из мобильной Почты Mail",
    "надіслано з @": "Надіслано з iPhone",
    "@ gönderildi": "iPhone'umdan gönderildi",
    "στάλθηκε από @": "Στάλθηκε από το iPhone μου",
    "נשלח מ@": "נשלח מה-iPhone שלי",
    "تم الإرسال من @": "تم الإرسال من iPhone الخاص بي",
    "أرسلت من @": "أرسلت من iPhone",
    "مرسل من @": "مرسل من iPhone الخاص بي",
    "ارسال شده از @": "ارسال شده از iPhone من",
    "@から送信": "iPhoneから送信",
    "发自我的*": "发自我的 iPhone",
    "从我的@发送": "从我的 iPhone 发送",
    "從我的*傳送": "從我的 iPhone 傳送",
    "傳送自我的*": "傳送自我的 iPhone",
    "나의 @에서 보냄": "나의 iPhone에서 보냄",
    "@에서 보냄": "Samsung Galaxy에서 보냄",
    "đã gửi từ @": "Đã gửi từ iPhone của tôi",
    "ส่งจาก@": "ส่งจาก iPhone ของฉัน",
    "dikirim dari @": "Dikirim dari iPhone saya",
    "dihantar dari @": "Dihantar dari iPhone saya",
    "enviat des @": "Enviat des del meu iPhone",
    "bidalia @": "Bidalia nire iPhone-tik",
}
# "*" is an ending.
DEVICES = (
    "iphon*", "айфон*", "ipad*", "ipod*", "ios", "macbook*", "apple watch", "android*", "galaxy*", "samsung*",
    "huawei*", "xiaomi*", "redmi*", "oneplus*", "oppo", "google pixel", "nokia*", "lumia", "htc", "motorola", "sony",
    "xperia", "fairphone", "wiko", "blackberry*", "windows*", "outlook*", "yahoo", "gmail", "mailbox", "aol", "gmx",
    "web.de", "proton", "protonmail", "tuta", "tutanota", "zoho", "airmail", "typeapp", "bluemail", "spark",
    "superhuman", "fastmail", "thunderbird*", "k-9", "em client", "mailspring", "mail orange", "mail app", "mail.ru",
    "yandex", "mobile", "phone", "smartphone*", "cellphone", "cell", "tablet*", "handy", "mobil", "mobiltelefon*",
    "mobilgerät", "téléphone", "telefon*", "teléfono", "móvil", "celular", "puhelim*", "telefón*", "телефон*",
    "смартфон*", "мобильной", "мобільн*",
)  # fmt: skip
# What may follow the name of a device.
EXCUSES = ("please", "excuse", "sorry", "pardon", "apolog", "forgive", "typo", "brevity", "an at&t", "bitte", "désolé")

# Words of a text that is nothing but a greeting above a quote.
GREETINGS = (
    "hi|hello|hey|dear|hallo|liebe|lieber|guten tag|guten morgen|moin|servus|sehr geehrte|sehr geehrter|bonjour|"
    "bonsoir|salut|cher|chère|hola|estimado|estimada|buenos días|buenas|ciao|buongiorno|gentile|salve|olá|oi|"
    "prezado|prezada|caro|cara|bom dia|boa tarde|beste|hoi|geachte|dag|hej|hei|kære|kjære|halló|terve|moikka|tere|"
    "sveiki|labas|cześć|dzień dobry|witam|ahoj|dobrý den|dobrý deň|živjo|pozdravljeni|bok|poštovani|zdravo|szia|"
    "kedves|jó napot|bună|bună ziua|salutare|здравей|здравейте|привет|здравствуйте|добрый день|привіт|добрий день|"
    "merhaba|sayın|γεια|γειά σας|שלום|היי|مرحبا|السلام عليكم|سلام|こんにちは|您好|你好|안녕하세요|xin chào|chào|"
    "สวัสดี|halo"
)
