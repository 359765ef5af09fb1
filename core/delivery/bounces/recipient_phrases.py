"""Recipient phrases: phrases that certainly or probably mean an invalid recipient, and phrases that contradict them.

Hosts report an invalid address in a thousand ways, and use the same words for senders, servers and messages. A wrong
suppression costs a customer a reader, so next to a contradicting phrase only unambiguous phrases count
(docs/decisions/0021). The notation is that of `core.delivery.bounces.bounce_phrases`.
"""

from core.delivery.bounces.phrases import PhraseTable
from core.delivery.bounces.reasons import FailureReason

# Most of these reports have one of the first words shortly before one of the others.
ADDRESSEES = (
    "user|users|recipient|recipients|mailbox|account|address|addressee|addresses|alias|customer|subscriber|member"
    "|email account|rcpt|local part|spectator"
)
CLOSED = (
    "disabled|suspended|deactivated|inactivated|inactive|frozen|terminated|dormant|discontinued|not active"
    "|not activated|not enabled|isnt active|no longer active|archived|not currently active"
)
# Also used for connections, messages and sessions.
SHUT = "closed|expired|deleted|removed|locked|cancelled|canceled|on hold"
UNKNOWN = (
    "unknown|not listed|not found|not exist|doesnt exist|does not exist|didnt exist|not known|not recognized"
    "|not recognised|unrecognized|not local|not registered|no longer exists|non-existent|nonexistent|has moved"
    "|has left|not a member|isnt known|not present|not in our|wasnt found|undeliverable|not ok"
)
# Also used for headers, host names and passwords.
WRONG = (
    "invalid|not valid|is wrong|incorrect|cannot be verified|cant be verified|could not be found|couldnt be found"
    "|cannot be found|not recognized|no longer valid|undeliverable"
)

# Causes beside which "unknown or …" and "no existe o …" do not mean that the recipient is unknown.
OTHER_CAUSES = (
    "full|over quota|blocked|not allowed|not permitted|not authorized|not authorised|restricted|refused|has refused"
    "|rejected|denied|temporarily|busy|lleno|llena|bloqueado|bloqueada|cheio|cheia|lotada|plein|pleine|pieno|piena|voll"
    "|gesperrt|vol|pełna|переполнен|заблокирован"
)

MAILBOX_FULL_PHRASES = PhraseTable(
    (FailureReason.MAILBOX_FULL, (
        "over quota", "overquota", "quota exceeded", "exceeded*quota", "exceeds*quota", "over the allowed quota",
        "over its quota", "over their quota", "over disk quota", "quota is exceeded", "quota full", "quota violation",
        "quota would be", "quota size", "disk quota", "disk full", "above quota", "out of storage", "storage full",
        "storage allocation", "storage limit", "storage space", "out of space", "enough space",
        "space not enough", "space has been used", "enough storage", "enough room", "not enough disk",
        "sufficient disk",
        "insufficient space", "insufficient disk", "insufficient storage", "no space left", "allowed storage",
        "mailbox full", "mailbox is full", "mail box full", "mail box is full", "box is full", "box full",
        "inbox is full", "inbox full", "folder is full", "full mailbox", "mailbox*is full", "user*is full",
        "account is full", "mailbox size limit", "mailbox limit", "mailbox*exceeded*size", "mailbox*exceeds*size",
        "mailbox exceeds allowed size", "mailbox has exceeded", "mailbox*over*limit", "mailfolder is full",
        "mail file size exceeds", "has no space", "too many messages in", "too many messages on",
        "too much mail data", "maildir over", "mail quota", "user*quota", "account*quota", "mailbox*quota", "quota",
        "receiving limit", "exceeding receiving", "postfach ist voll", "postfach voll", "boite pleine",
        "destinataire pleine", "boite*pleine", "buzon*lleno", "casilla*llena", "esta lleno", "correo lleno", "cuota",
        "caixa*cheia", "caixa*lotada", "casella*piena", "postfach*voll", "almacenamiento", "zuviele mails",
        "mail system full", "mailbox is too full", "database is over its disk quota", "exhausted allowed",
        "user has exceeded",
    )),
)  # fmt: skip

# Phrases of temporary failures. They rule out an unknown recipient, even next to other phrases.
TEMPORARY_PHRASES = PhraseTable(
    # Phrases of Exim and SES for expired messages, with any code.
    (FailureReason.EXPIRED, (
        "retry time", "queue too long", "message expired", "delivery expired", "delivery time expired",
        "unable to deliver in",
    )),
    (FailureReason.DNS, (
        "not found try again", "not found temporar", "lookup failure", "servfail", "name server timeout",
        "name server reply",
    )),
    # A file that the host cannot read or write, with any code: vpopmail, procmail, qmail, Sendmail.
    (FailureReason.HOST_TROUBLE, (
        "not open~file", "cannot open", "cant open", "couldnt open", "unable to open", "failed to open",
        "not create~file", "cannot create", "couldnt create", "cant create", "unable to create", "failed to create",
        "unable to chdir", "unable to switch", "no such file or directory", "file does not exist",
        "file doesnt exist", "read-only file", "input/output error", "i/o error", " errno", "file system",
    )),
    # vpopmail: there is no such mailbox, but one for all unknown addresses.
    (FailureReason.HOST_TROUBLE, ("but will deliver to",)),
    (FailureReason.HOST_TROUBLE, (
        "temporar", "temporal", "vorubergehend", "mas tarde", "mais tarde", "plus tard", "piu tardi", "spater erneut",
        "позже", "try again later", "try later", "try it later", "try again in", "later time",
        "retry later", "please retry", "will retry", "will be retried", "come back later", "maintenance",
        "by another process", "not yet been", "for the moment", "momentarily",
    )),
)  # fmt: skip

# Phrases that can only refer to the recipient.
CERTAIN_PHRASES = PhraseTable(
    (FailureReason.BAD_DOMAIN, (
        "host or domain name not found", "domain not found", "domain name not found", "domain does not exist",
        "domain doesnt exist", "no such domain", "unknown domain", "domain unknown", "unrouteable mail domain",
        "unroutable mail domain", "host unknown", "unknown host", "invalid host name", "illegal host/domain",
        "name or service not known", "nxdomain", "non-existent domain", "nonexistent domain", "non-existent host",
        "couldnt find any host named", "couldnt find any host by that name", "name service error*host not found",
        "dns domain*does not exist", "no mx or a", "no mail server for", "no mx for", "no mail hosts for domain",
        "null mx", "nullmx", "mail not accepted for domain", "domain is not accepting mail",
        "not accepting mail for domain", "domain is not hosted", "domain not hosted", "no such host",
        "domain expired", "domain is disabled", "domain~inactive", "recipient domain~not", "recipient domain must",
        "recipient domain does", "werent able to find the recipient domain", "domain mentioned*unknown",
        "no such domain at this location", "tenant or domain not found", "no route found to domain",
        "domain name*does not appear to be registered", "host name is unknown", "couldnt find a mail exchanger",
        "record indicated no smtp service", "domain could not be found in dns", "domain was not found in dns",
        "no mx record found for domain", "no mx found for domain", "no mx records found for domain",
    )),
    (FailureReason.INACTIVE, (
        f"account|mailbox~{SHUT}", "account blocked", "account is blocked", "account isblocked", "mailbox is blocked",
        "account is disabled", "mailbox is disabled", "mailbox disabled", "user suspended", "user is suspended",
        "user status is locked", "user is locked", "user is blocked", "inactive user", "inactive mailbox",
        "inactive account", "inactive recipient", "inactive address", "inactivity", "archivee", "is expired account",
        "expired user", "disabled account", "disabled user", "disabled mailbox", "disabled recipient",
        "disabled for this recipient", "address is disabled", "is now disabled", "suspended account",
        "suspended user", "suspended mailbox", "recipient suspend", "deactivated mailbox", "deactivated user",
        "deactivated account", "no longer in use", "no longer in service", "no longer used", "no longer accepts mail",
        "no longer accepts email", "no longer accepting", "no longer monitored", "no longer being used",
        "mail receiving disabled", "not active anymore", "email account*is disabled", "email account*is inactive",
        "user or domain is disabled", "administratively disabled", "no recipient activity", "nieaktywne",
        "deaktiviert", "inattiv", "disabilitat", "expirado por falta de uso", "estado inactivo", "per inutilizzo",
        "disattivata", "desactivee", "incoming suspended",
    )),
    (FailureReason.UNKNOWN_USER, (
        f"{ADDRESSEES}~{UNKNOWN}", f"no such|no valid~{ADDRESSEES}", f"unknown|nonexistent|non-existent~{ADDRESSEES}",
        "user unknown", "unknown user", "userunknown", "unknown or illegal", "unknown alias", "user is unknown",
        "user not known", "unknown recipient", "recipient is unknown", "unknown local", "unknown address",
        "unknown email", "unknown account", "unknown addressee", "unknown virtual", "unknown or invalid",
        "unknown destination", "destination addresses were unknown", "no such user", "tried to reach does not exist",
        "trying to reach does not exist", "trying to reach doesnt exist", "no se encuentra en el directorio",
        "no se encuentra en la libreta", "nicht im domino",
        "no such person", "no such name", "no such email", "no such mail ", "no such local", "no such destination",
        "no such a user", "no such id", "no such virtual", "nosuchuser", "no user", "no mailbox", "no mail box",
        "no mail-box", "no account", "no local mailbox", "no matching user", "no matching recipient", "no one here",
        "no one at this", "no one with that", "no email address", "no known user", "no this user",
        "user was not found", "cannot find user", "couldnt find user", "cant find user", "could not find user",
        "cannot find the recipient", "no existe", " n existe", "existe pas", "inexistant", "inexistente",
        "inesistente", "desconocido", "inconnu", "sconosciut", "desconhecido", "desconhecida", "unbekannt",
        "nicht gefunden", "existiert nicht", "nao encontrado", "onbekend", "ukjent", "nie istnieje", "nie ma takiego",
        "non esiste", "nao existe", "não existe", "nicht vorhanden", "bestaat niet", "finns inte", "findes ikke",
        "neexistuje", "bulunamad", "inesistent", "destinataire invalide", "nessun utente", "not a valid user",
        "not a valid recipient", "not a valid mailbox", "not a valid account", "not a valid local", "not a known",
        "not a user", "not a recipient", "not an existing user", "not our user", "not in the directory",
        "not in address book", "not in user list", "not listed in public", "not found in*directory", " @ not found",
        " @ unknown", " @ is unknown", "@ does not exist", "@ doesnt exist", "cant accept user", "cannot accept user",
        "does not have an account", "doesnt have an account", "not have an account", "not have a mailbox",
        "not have mailbox", "no mail-enabled", "name directory", "public name", "recipients was undeliverable",
        "recipients were undeliverable", "badrcptto", "badrecipientto", "validrcptto", "envelope recipient*denied",
        "missing home directory", "mailbox unavaiable", "invalid recipient", "invalid-recipient", "invalid mailbox",
        "invalid user", "invalid rcpt", "invalid final", "recipient invalid", "recipient is invalid",
        "mailbox invalid", "user invalid", "user name is invalid", "bad address @", "bad recipient",
        "bad final recipient", "bad destination", "bad mailbox", "wrong recipient", "wrong user", "illegal user",
        "illegal recipient", "incorrect recipient", "undeliverable address", "undeliverable mailbox",
        "unrouteable address", "unroutable address", "no longer with", "no longer employed", "no longer an employee",
        "no longer on server", "left the company", "user moved", "mailbox moved", "user has moved",
        "address has changed", "has been replaced by", "mailbox name not allowed", "user address required",
        "not a member of domain", "not our customer", "address_not_found", "not found in ldap", "errato",
        "not in recipient list", " @ not used", "not listed in*domino directory", "recipient name is not recognized",
        "email account does not exist", "email address was not found", "address you entered couldnt be found",
        "wasnt found at", "unrecognised-or-name", "unrecognised o r name", "unrecognized o r name", "unknown or-name",
        "name was not found at the remote site",
    )),
)  # fmt: skip

# Phrases that probably refer to the recipient; they count unless a doubt phrase is present.
LIKELY_PHRASES = PhraseTable(
    (FailureReason.BAD_ADDRESS, (
        "bad address syntax", "address syntax", "not a valid rfc", "domain missing or malformed",
    )),
    (FailureReason.BAD_DOMAIN, (
        "bad domain", "host not found", "host*not found", "domain*not exist",
        "does not accept mail", "doesnt accept mail", "accepts no mail", "doesnt accept email",
        "does not accept email", "no mail service", "domain has no", "domain isnt", "domain lookup failed",
        "domain must exist", "not currently being accepted", "domain*could not be resolved", "@ invalid domain name",
    )),
    (FailureReason.INACTIVE, (
        f"{ADDRESSEES}*{CLOSED}", "is inactive", "is not active", "is suspended", "currently suspended",
        "deactivated", "no longer active", "not an active", "discontinued", "not currently accepting",
        "not activated", "mailbox is currently unavailable",
    )),
    (FailureReason.UNKNOWN_USER, (
        f"{ADDRESSEES}|email~{WRONG}", f"invalid|wrong|illegal|incorrect~{ADDRESSEES}|email",
        f"{ADDRESSEES}*{UNKNOWN}", f"unknown|no such~{ADDRESSEES}|email", "unknown to", "unknown in", "were unknown",
        "was unknown", "not found on this server", "could not be found", "couldnt be found", "does not exist",
        "doesnt exist", "dosnt exist", "dosent exist", "dont exist", "do not exist", "not exist", "doesnot exist",
        "non-existent", "nonexisting", "non existent", "not existing", "no longer exists", "doesnt have",
        "not a valid mail", "not a valid address", "not a valid email", "isnt a valid", "is not known", "isnt known",
        "not a local", "not on this server", "not registered", "not present", "does not receive", "doesnt receive",
        "not available any", "unavaiable", "invalid address", "invalid destination", "address invalid", "bad address",
        "wrong address", "incorrect address", "unable to find user", "unable to find recipient",
        "unable to find mailbox", "unable to find alias", "unable to verify recipient", "cannot deliver mail for",
        "unable to validate recipient", "unable to route to", "recipient verify", "verify recipient",
        "recipient verification", "cannot be verified*recipient", "recipient address verification",
        "no longer available", "no longer valid", "no longer works", "no longer at", "recipient no longer",
        "unrouteable", "unroutable", "misspelled", "doesnt handle mail for that",
        "cannot receive email", "cannot receive mail", "not allowed to this address", "non-existant",
        "server rejected recipients", "recipient not allowed", "recipient is not allowed",
        "please check if address is correct",
    )),
)  # fmt: skip

# Phrases of a host that is not sure, or gives several causes. They outweigh even a certain phrase, but not a code.
UNCERTAIN_PHRASES = PhraseTable(
    (FailureReason.HOST_TROUBLE, ("ambiguous", "not unique", "several matches", "multiple matches")),
    (FailureReason.POLICY, (
        f"or|o|ou|oder|eller|lub|или*{OTHER_CAUSES}", "or you*permission|authorized|authorised|allowed|permitted",
        "may not exist", "might not exist", "may no longer exist", "möglicherweise", "berechtig", "peut-être",
        "se peut que", "autoris", "quizá", "es posible que", "tal vez", "permiso", "potrebbe", "autorizza", "talvez",
        "pode não", "permissão", "misschien", "mogelijk", "kanske", "måske", "kanskje", "może nie", "uprawnie",
        "pravděpodobně", "oprávnění", "возможно", "разрешен", "可能不", "可能性", "かもしれ", "権限", "权限",
        "權限", "권한",
    )),
)  # fmt: skip

# Phrases about other subjects; none of them refers to a recipient.
DOUBT_PHRASES = PhraseTable(
    (FailureReason.SPAM, ("spam", "unsolicited", " junk", "bulk mail", "bulk email")),
    (FailureReason.POLICY, (
        "sender", "sending", "originat", " author ", "reply-to", "reply address", "your address", "your email address",
        "you are ", "your account has", "your server", "your mail server", "your host",
        "your network", "your isp", "mail from ", "message from", "from address", "policy", "policies", "blocked",
        "blocking", "restrict", "moderat", "attachment", "content", "prohibit", "forbidden", "abuse", "forger",
        "forged", "a rule", "rules", "not permitted", "not allowed to send", "not allowed to relay",
        "not allowed to post", "not allowed to connect", "whitelist", "allowlist", "address book", "preferences",
        "refuses", "user reject", " url", "complaint", "mailing list", "external", "permission",
        "your message does not", "protected",
    )),
    (FailureReason.AUTHENTICATION, ("authenticat", "credential", "password", " log in", "login")),
    (FailureReason.PROTOCOL, (
        "header", "message-id", "argument", " format", "syntax error", "charset", "encoding", " mime",
    )),
    (FailureReason.TLS, (" tls", "certificate", "encrypt")),
    (FailureReason.DNS, ("dns",)),
    (FailureReason.NETWORK, ("connection", "timed out", "timeout")),
    (FailureReason.HOST_TROUBLE, (
        "configur", "system error", "internal error", "mail server", "mail host", "file not",
    )),
    (FailureReason.TOO_LARGE, ("too large", "too big", "size")),
)  # fmt: skip

# Phrases for unknown addresses that have other uses, too. Not searched in replies to the message itself, and a doubt
# phrase outweighs them.
POSSIBLE_RECIPIENT_PHRASES = PhraseTable(
    (FailureReason.UNKNOWN_USER, (
        "mailbox name", "recipient unavailable", "account unavailable", "account not available", "destination not",
        "address error", "cannot deliver to", "cannot route to",
    )),
)  # fmt: skip

# Refusals of a recipient for any cause. They count only at the end of a text, for which the dot stands: in "Recipient
# address rejected: <anything>" the words after the colon decide.
UNEXPLAINED_PHRASES = PhraseTable(
    (FailureReason.UNKNOWN_USER, (
        "address rejected .", "rejected address .", "rcpt rejected .", "recipient rejected .",
        "recipient @ rejected .",
        "recipient not accepted .", "recipients not accepted .", "recipient is not accepted .", "recipient refused .",
        "rejected recipient .", "address not accepted .", "does not like recipient .", "doesnt like recipient .",
        "recipient denied .", "recipient @ denied .", "recipients rejected .", "rcpt refused .",
    )),
)  # fmt: skip
# Clauses that may follow a refusal and explain nothing.
NEUTRAL_CLAUSES = (
    " in reply to ", " giving up on ", " see ", " please ", " remote host said ", " for more information", " for help",
)  # fmt: skip

# The wording of RFC 5321, section 4.2.3, for a 550 at RCPT; hosts also use it with security codes.
UNAVAILABLE_PHRASES = PhraseTable(
    (FailureReason.UNKNOWN_USER, (
        "mailbox unavailable", "mailbox not available", "mailbox is unavailable", "mailbox is not available",
        "mailbox~unavailable", "unavailable mailbox", "user unavailable", "user~unavailable", "user not available",
        "account is unavailable", "requested action not taken mailbox",
    )),
)  # fmt: skip
