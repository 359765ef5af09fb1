"""Domain names in DNS and SMTP form."""

import re

import idna

from core.lib.coded_texts import CodedText
from core.lib.network.public_suffixes import public_suffixes

LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
MAX_LENGTH = 253
# A name in a URL, in an email address, or with a port or a path.
WRAPPED = re.compile(
    r"(?=.*[/@:])(?:[a-zA-Z]+:/*)?(?:[^@/\s]*@)?(?P<name>[^@:/?#\s]+\.[^@:/?#\s.]+)\.?(?::\d*)?(?:[/?#].*)?", re.DOTALL
)
# Public mail providers, whose mailbox owners do not control their DNS (docs/decisions/0038). Rejected early because
# they can never be verified; a provider missing here stays unverified. Subdomains are accepted: some are used to send.
MAIL_PROVIDERS = frozenset(
    """
    gmail.com googlemail.com
    outlook.com hotmail.com live.com msn.com passport.com hotmail.co.uk hotmail.de hotmail.es hotmail.fr hotmail.it
    live.co.uk live.de live.fr live.it live.nl outlook.de outlook.es outlook.fr outlook.it outlook.jp
    yahoo.com ymail.com rocketmail.com myyahoo.com yahoo.ca yahoo.co.id yahoo.co.in yahoo.co.jp yahoo.co.uk yahoo.com.ar
    yahoo.com.au yahoo.com.br yahoo.com.mx yahoo.com.ph yahoo.com.tw yahoo.de yahoo.es yahoo.fr yahoo.in yahoo.it
    aol.com aol.co.uk aol.de aim.com netscape.net verizon.net
    icloud.com me.com mac.com
    proton.me protonmail.com protonmail.ch pm.me
    tutanota.com tutanota.de tutamail.com tuta.com tuta.io keemail.me
    fastmail.com fastmail.fm hey.com hushmail.com mailbox.org posteo.de posteo.net runbox.com startmail.com zoho.com
    zohomail.com disroot.org riseup.net
    gmx.at gmx.ch gmx.com gmx.de gmx.net web.de mail.com email.com usa.com t-online.de freenet.de arcor.de
    orange.fr wanadoo.fr free.fr laposte.net sfr.fr neuf.fr bbox.fr
    libero.it virgilio.it tiscali.it alice.it tin.it
    bluewin.ch telenet.be skynet.be ziggo.nl kpnmail.nl xs4all.nl home.nl telia.com
    btinternet.com sky.com talktalk.net virginmedia.com ntlworld.com blueyonder.co.uk
    comcast.net att.net sbcglobal.net bellsouth.net charter.net cox.net earthlink.net juno.com optonline.net
    rogers.com shaw.ca sympatico.ca bigpond.com optusnet.com.au
    terra.com.br uol.com.br bol.com.br ig.com.br
    mail.ru bk.ru inbox.ru list.ru internet.ru yandex.ru yandex.com ya.ru rambler.ru ukr.net i.ua
    seznam.cz email.cz centrum.cz wp.pl o2.pl onet.pl interia.pl abv.bg
    qq.com foxmail.com 163.com 126.com yeah.net sina.com sina.cn sohu.com 139.com 189.cn aliyun.com
    naver.com daum.net hanmail.net nate.com docomo.ne.jp ezweb.ne.jp softbank.ne.jp
    rediffmail.com walla.co.il walla.com
    mailinator.com guerrillamail.com yopmail.com 10minutemail.com temp-mail.org trashmail.com
    """.split()  # noqa: SIM905  # 150 quoted names are harder to read
)


class InvalidDomainName(ValueError):
    """Raised for a text that is not a complete domain name; the message explains why."""


def to_a_label(text: str) -> str:
    """Return the lower-case ASCII form of a domain name (IDNA 2008, UTS 46). Raises InvalidDomainName."""
    shown = repr(text[:80])
    if wrapped := WRAPPED.fullmatch(text.strip()):
        raise InvalidDomainName(CodedText("domains.name_in_url", name=shown, inner=repr(wrapped["name"])))
    try:
        name = idna.encode(text.strip().rstrip("."), uts46=True).decode().lower()
    except idna.IDNAError as error:
        raise InvalidDomainName(CodedText("domains.not_a_name", name=shown)) from error
    labels = name.split(".")
    if len(name) > MAX_LENGTH or len(labels) < 2 or not all(LABEL.fullmatch(label) for label in labels):
        raise InvalidDomainName(CodedText("domains.not_a_complete_name", name=shown))
    if labels[-1].isdigit():
        raise InvalidDomainName(CodedText("domains.ip_address", name=shown))
    return name


def parse_registrable_name(text: str) -> str:
    """Return the A-label of a domain that can be registered. Raises InvalidDomainName."""
    name = to_a_label(text)
    if public_suffixes().is_public(name):
        raise InvalidDomainName(CodedText("domains.public_suffix", name=name))
    if name in MAIL_PROVIDERS:
        raise InvalidDomainName(CodedText("domains.mail_provider", name=name))
    return name
