"""Bounce phrases: phrases of refusals by reason, in the order in which the tables are searched.

Phrases are matched against `classification.normalized_text`: lower case, no apostrophes, every other punctuation mark
but . @ # / _ - replaced by a space, addresses by a lone @, IP addresses by #ip#, accents removed, a space at both ends
(so that " rbl " is a word). A star stands for up to sixty characters, a tilde for up to twenty, a caret for up to
five. Sources: the postmaster pages of the hosts, and the source code of the servers: Postfix, Exim, Sendmail, qmail,
Exchange, Domino, IronPort, Barracuda.
"""

from core.delivery.bounces.phrases import PhraseTable
from core.delivery.bounces.reasons import FailureReason

SENDERS = (
    "sender|senders|return path|return-path|reverse path|reverse-path|originator|originators|originating|author"
    "|sending user|sending account|sending mailbox|sending address|sending email|sending domain|source address"
    "|source domain|mail from|envelope from|envelope-from|from header|header from|from user|from mailbox|from field"
    "|reply-to|reply to address|reply address|bounce address|your address|your email address|your email domain"
    "|your domain|your mail domain|your sending domain|your organization|your organisation|your company|sending from"
    "|submitter|absender|absenders|absenderadresse|absenderdomain|ihre adresse|ihre email|ihre domain|remitente"
    "|remetente|expediteur|lexpediteur|emetteur|lemetteur|votre adresse|votre domaine|mittente|отправителя"
    "|отправитель|afzender|avsandaren|avsenderen|afsenderen|nadawca|nadawcy|odesilatel"
)
REFUSED = (
    "unknown|not found|not exist|does not exist|doesnt exist|not known|no existe|nao existe|non esiste|n existe pas"
    "|nexiste pas|existiert nicht|unbekannt|inconnu|desconocido|desconhecido|sconosciuto|invalide|invalido"
    "|inexistente|inesistente|не существует|не найден|nie istnieje|bestaat niet|onbekend|finns inte|no such"
    "|no longer exists|not be found|cannot be found|couldnt be found|is blocked|invalid|not valid|not a valid"
    "|not registered|not local|not a member|not in our|does not have|doesnt have|has no|null mx|nxdomain"
    "|not be verified|cannot be verified|cant be verified|couldnt be verified|not be resolved|cannot be resolved"
    "|couldnt be resolved|does not accept|doesnt accept|not accepting|undeliverable|unrouteable|unroutable|disabled"
    "|suspended|inactive|deactivated|frozen|locked|closed|deleted|expired|mailbox unavailable"
)
# The same in front of the noun.
UNUSABLE = (
    "unknown|no such|nonexistent|non-existent|invalid|illegal|incorrect|wrong|bad|inactive|disabled|suspended"
    "|unregistered|unverified|unrouteable|unroutable|undeliverable|unresolvable|not find|cannot find|couldnt find"
    "|cant find|unable to find|not verify|cannot verify|couldnt verify|cant verify|unable to verify|no account for"
    "|no mailbox for|no mx for|no mail server for|unable to route to"
)
# "Your account is inactive" is written to the owner of the mailbox; these words, to the customer of a relay.
OWN_ACCOUNT = "your account|your mailbox|your user|your username"
CLOSED_TO_SENDERS = "suspended|disabled|is blocked|locked|frozen|closed|deleted|deactivated|unknown|not exist|no such"
SIGNERS = "signing domain|dkim domain|spf domain"
# The host that connects, and the name that it gives.
OWN_HOST = "your host|your hostname|your host name|your server|client host|client hostname|connecting host"
# Phrases more reliable than any code with them: providers' own marks, and hosts that put 5.1.1 before a refusal of
# the sender.
PROVIDER_PHRASES = PhraseTable(
    # Google, at support.google.com/a/answer/3726730. The 5xx and the 421 begin alike; only the 5xx is a block.
    (FailureReason.BLOCKLISTED, (
        "mail sent from your ip address has been blocked", "not authorized to send email directly to our servers",
    )),
    (FailureReason.POLICY, ("messages with the same message-id",)),
    (FailureReason.RATE_LIMITED, (
        "receiving mail at a rate that", "receiving mail too quickly", "unusual rate of mail", "daily user sending",
        "daily sending quota", "daily smtp relay", "outgoing message limit",
    )),
    (FailureReason.REPUTATION, ("unusual rate of unsolicited mail", "very low reputation of the sending")),
    (FailureReason.PROTOCOL, ("is not rfc 5322 compliant",)),
    (FailureReason.AUTHENTICATION, ("mail from domain*spf record",)),
    (FailureReason.SPAM, ("is likely unsolicited mail", "message that is likely unsolicited")),
    # Microsoft: the [S77719] family at outlook.com, Exchange's routing terms.
    (FailureReason.RATE_LIMITED, (
        "outlook.com*s775", "server busy please try again later from", " rp-001 ", " rp-002 ", " rp-003 ",
    )),
    (FailureReason.REPUTATION, ("temporarily rate limited due to ip reputation", "s77719", " s844 ")),
    (FailureReason.BLOCKLISTED, (
        "part of their network is on our block list", " s3140 ", " s3150 ", " oudc-001", " ou-001 ", " ou-002 ",
        " dy-001 ", " dy-002 ", " sc-001 ", " sc-002 ", " sc-003 ", " sc-004 ", "banned sending ip",
        "access denied banned sender",
    )),
    (FailureReason.POLICY, (
        "sendernotauthenticatedforgroup", "resolver.rst.notauthorized", "resolver.rst.auth",
        "resolver.rst.recipsizelimit*sender", "notauthorized not authorized", "all recipient addresses rejected",
    )),
    (FailureReason.TOO_LARGE, ("resolver.rst.recipsizelimit", "resolver.rst.sendsizelimit")),
    (FailureReason.UNKNOWN_USER, (
        "resolver.adr.recipientnotfound", "resolver.adr.recipnotfound", "resolver.adr.exrecipnotfound",
        "recipient not found by smtp address lookup", "legacyexchangedn", "access denied as 201806281",
        "recipient address rejected access denied*outlook.com",
        "requested action not taken mailbox unavailable s2017062302",
    )),
    (FailureReason.MAILBOX_FULL, (
        "user has too many messages on", "mapiexceptionshutoffquotaexceeded", "storedrv.deliver*quota",
        "overquotatemp", "overquotaperm",
    )),
    (FailureReason.INACTIVE, ("storedrv*mailbox disabled", "storedrv*accountdisabled", "accountdisabledexception")),
    # Exchange Online: mail over IPv6 from a sender without SPF or DKIM. Mimecast: the account of the sender.
    (FailureReason.AUTHENTICATION, ("does not accept email over ipv6", "not accept mail over ipv6")),
    (FailureReason.POLICY, ("account outbounds disabled",)),
    # Mimecast: its table of SMTP error codes (451). The account has too many connections.
    (FailureReason.RATE_LIMITED, ("account service is temporarily unavailable",)),
    (FailureReason.GREYLISTED, (
        "internal resource temporarily unavailable", "internal resource is temporarily unavailable",
        "internal resources are temporarily unavailable",
    )),
    # Yahoo and AOL: senders.yahooinc.com/smtp-error-codes.
    (FailureReason.REPUTATION, (
        " tss04 ", " tss05 ", " tss09 ", " tss11 ", " tss12 ", " tss13 ",
        "due to unexpected volume or user complaints", "due to user complaints", " ipts04 ", " ipts03 ", " rtr bl ",
        " rtr ge ", " rtr su ",
    )),
    (FailureReason.RATE_LIMITED, (" ts01 ", " ts02 ", " ts03 ", " tss02 ", " tss03 ", " ipts01 ", " ipts02 ")),
    (FailureReason.BLOCKLISTED, (
        " bl21 ", " bl22 ", " bl23 ", " gl01 ", " rly b1 ", " rly b2 ", " con b1 ", " dyn t1 ", " rtr bb ",
        " rtr bg ",
    )),
    (FailureReason.UNKNOWN_USER, ("this user doesnt have a*account", "this user does not have a*account")),
    (FailureReason.INACTIVE, ("this account has been disabled or discontinued",)),
    # Yahoo: the end of one connection, which the next one does not meet (Sisimai's lib/sisimai/rhost/yahooinc).
    (FailureReason.RATE_LIMITED, ("max message per connection",)),
    # Orange, T-Online, AT&T, Zoho, Biglobe.
    (FailureReason.SPAM, (" ofr_506 ",)),
    (FailureReason.BLOCKLISTED, ("a problem occurred ask your postmaster",)),
    (FailureReason.REVERSE_DNS, ("fix reverse dns for",)),
    (FailureReason.RATE_LIMITED, ("unusual sending activity",)),
    (FailureReason.POLICY, ("mail rejected by destination domain",)),
    (FailureReason.MAILBOX_FULL, ("mailbox exceeded the local limit",)),
    # AT&T and Free (forwardemail.net's and Momentum's tables), and Cloudmark's list at Rackspace, Libero and GoDaddy.
    (FailureReason.BLOCKLISTED, (
        " dnsbl rbl 521 ", "too many spams from your ip", "csi.cloudmark.com/reset-request",
    )),
    # Orange and La Poste: 101 and 102 are lists of addresses, whatever the digits before.
    (FailureReason.BLOCKLISTED, ("lpn~_101", "lpn~_102", "ofr~_102")),
    # Titan, at smtp.codes/titan: quotas of the recipient or its domain, with codes for expiry and loops.
    (FailureReason.RATE_LIMITED, (
        "recipients domain~hourly quota|daily quota", "mailbox does not exist domains~quota",
        "address rejected recipient quota exceeded",
    )),
    # GoDaddy: IB110 to IB113 (smtp.codes/godaddy), and MXroute's ranges of addresses (smtp.codes/mxroute).
    (FailureReason.BLOCKLISTED, (" ib110 ", " ib111 ", " ib112 ", " ib113 ")),
    (FailureReason.REPUTATION, ("mail not allowed from this range",)),
    # Apple, at support.apple.com/en-us/102322; the volume in Sisimai's lib/sisimai/rhost/apple.
    (FailureReason.BLOCKLISTED, ("rejected due to listing in",)),
    (FailureReason.RATE_LIMITED, ("deferred due to excessive volume",)),
    (FailureReason.POLICY, (" cs01 ", " hm07 ", " hm08 ", " hme1 ")),
    # Rackspace: the throttling in its article "Common email bounce messages", the amount of email as users quote it;
    # Orange, and NetEase's limits of connections and messages (Momentum's adaptive_rules.lua).
    (FailureReason.RATE_LIMITED, (
        "client host rejected throttled", "received too much email", "trop de connexions", " hl icc ", " hl ifc ",
    )),
    # Comcast: postmaster.comcast.net/smtp-error-codes.php.
    (FailureReason.BLOCKLISTED, (" bl0000", "#bl0000", " ph0000")),
    (FailureReason.RATE_LIMITED, (" rl0000", "#rl0000", "too many recent messages")),
    # Cox: postmaster.cox.net.
    (FailureReason.BLOCKLISTED, (" cxbl ",)),
    (FailureReason.UNKNOWN_USER, ("not our customer",)),
    # Amazon SES: its own list of addresses that bounced.
    (FailureReason.UNKNOWN_USER, ("recent history of bouncing as an invalid address",)),
    # Tencent, at service.mail.qq.com: the mailbox receives too much for now. Its hosts misspell the last word.
    (FailureReason.RATE_LIMITED, ("mailbox unavailable or access denied", "mailbox unavailable or access denined")),
    (FailureReason.REPUTATION, ("suspected spam ip",)),
    # NetEase: help.163.com, "DT:SPM" and similar, without the colon.
    (FailureReason.SPAM, (" dt spm ", " mi spf ", " mi spb ", " dt sum ", " hl its ")),
    (FailureReason.BLOCKLISTED, (" hl ipb ", " dt rbl ", " rp cel ", " hl itc ")),
    (FailureReason.AUTHENTICATION, (" mi dma ",)),
    (FailureReason.RATE_LIMITED, (" mi spc ", " mi sfq ", " mi dmc ", " rp trc ", " mi clc ", " mi stc ", " rp orq ")),
)  # fmt: skip

# Phrases about the sender. They rule out a problem with the recipient, even with a code such as 5.1.1.
SENDER_PHRASES = PhraseTable(
    (FailureReason.AUTHENTICATION, (f"{SIGNERS}~{REFUSED}", "spf sender", "dkim sender")),
    (FailureReason.POLICY, (
        f"{SENDERS}~{REFUSED}", f"{UNUSABLE}^{SENDERS}",
        f"{OWN_ACCOUNT}~{CLOSED_TO_SENDERS}", "sender host", "return path", "return-path",
        "发件人", "寄件人", "送信者", "送信元", "差出人",
        "sender address", "sender email", "sender rejected", "sender denied", "sender refused", "sender verif",
        "verify sender", "verify the sender", "verifying sender", "sender callout", "callback to sender",
        "verification failed for", "domain of sender", "sender domain", "senders domain", "domain of the sender",
        "sender is not", "sender not", "sender*blocked", "blocked sender", "invalid sender", "unknown sender",
        "bad sender", "sender unknown", "sender is unknown", "null sender", "empty sender", "unroutable sender",
        "unrouteable sender", "envelope sender", "empty envelope", "bad envelope from", "badmailfrom",
        "mail from*rejected", "mail from*denied",
        "mail from*refused", "mail from*not allowed", "mail from*not owned", "mail from*invalid", "bogus mail from",
        "mail from domain", "to mail from command", "from address", "from domain", "return address", "reverse-path",
        "reverse path", " dns check failed", "the senders domain", "the senders ip", "emetteur", "helo command",
        "helo name", "helo argument", " helo ", " ehlo ", "you are sending from", "your mx record", "batv",
        "backscatter protection", "unsigned dsn", "third-party dsns", "sending to remote addresses",
        "accepting mail from specific", "only accept mail from", "only accepts mail from", "sender was rejected",
        "your domain does not", "your domain has no", "your domain is not",
        "domain of your", "from unknown", "mailfrom",
    )),
    (FailureReason.REVERSE_DNS, (f"{OWN_HOST}~{REFUSED}",)),
)  # fmt: skip

# Problems of the sending host. They outweigh a 5.1.1 without a phrase about the recipient.
HOST_PHRASES = PhraseTable(
    (FailureReason.GREYLISTED, (
        "greylist", "graylist", "grey list", "gray list", "grey-list", "gray-list", "postgrey",
        "you have been deferred*first time",
    )),
    (FailureReason.VIRUS, (" virus", "malware", "trojan", "phishing", "infected", "ransomware", "executable file")),
    (FailureReason.REVERSE_DNS, (
        "reverse dns", "reverse lookup", "reverse hostname", "reverse host name", " rdns ", "reverse-dns", " ptr ",
        "ptr record", "cannot find your hostname", "cannot find your reverse", "no reverse", "reverse map",
        "does not have a valid hostname", "ip name lookup failed", "ip*does not resolve",
        "client host rejected cannot find", "fcrdns", "iprev", "forward confirmed", "client host name*not match",
    )),
    (FailureReason.AUTHENTICATION, (
        "dmarc", "dkim", " spf ", " spf-", "spf check", "spf fail", "openspf", "spf=", "sender policy framework",
        "sender id fail", "not authorized to send*on behalf", "unauthenticated email", "unauthenticated mail",
        "required authentication level", "not authorized to send mail from", "not permitted to send mail from",
        "not allowed to send mail from", "is not designated as a permitted sender", "not a designated", "spoof",
        "domain owner discourages", "sender is forged", "forged sender", "forged from", "authentication checks",
        "is not allowed to send from", "sender address*forged", "invalid ip for sending mail", "mismatches client ip",
    )),
    (FailureReason.PROTOCOL, ("illegal character", "invalid character")),
    (FailureReason.POLICY, (
        "character set", "user does not accept", "user doesnt accept", "recipient does not accept",
    )),
    # Before the words about an address, which are those of lists otherwise.
    (FailureReason.RATE_LIMITED, ("sending excessive", "generating excessive", "is flooding")),
    (FailureReason.REPUTATION, ("insufficient reputation",)),
    (FailureReason.BLOCKLISTED, (
        "aup#", "spamhaus", "spamcop", "sorbs", "barracudacentral", "blacklist", "black list", "black-list",
        "blocklist", "block list", "block-list", "blocked list", "denylist", " rbl", "dnsbl", "dnsrbl", "uribl",
        "surbl", "blocked using", "is listed", "are listed", "was listed", "been listed", "listed at ", "listed by ",
        "is on our list", "blocked by ip", "ip is blocked", "ip blocked", "ip address blocked",
        "ip address has been blocked", "ip has been blocked", "your ip", "sending ip", "client host*blocked",
        "banned ip", "from ip*banned", "ipcheck.proofpoint", "blocked - see http", " bl.", " zen.", "psbl",
        "dynablock", "dynamic ip", "dynamic address", "dial-up", "dialup", "backscatterer", "abuseat", "uceprotect",
        "invaluement", "access denied*ip", "ip~not allowed", "ip address*blocked", "connection refused by policy",
        "connection rejected by policy", "ip address*rejected", "host*is blocked", "blocked*senderbase",
        "blocked by*barracuda", "not accept mail from", "access from*denied", "your host*blocked",
        "your network*blocked", "your mail server*blocked", "your server*blocked", "client host rejected",
        "rejected because*server*listed", "your domain*blocked", "cloudmark sender intelligence",
        "will not accept delivery", "your mail server", "open proxy", "smtp server of your isp", "this ip address",
        "ip address sending", "your host*in dns", "your hostname*in dns", "client host*in dns",
    )),
    (FailureReason.REPUTATION, (
        "reputation", "user complaints", "poor sender", "sender score", "senderscore", "senderbase", "bad behavior",
        "bad behaviour", "spam rate ", "complaint rate ",
    )),
    (FailureReason.RATE_LIMITED, (
        "rate limit", "rate-limit", "ratelimit", "rate exceeded", "throttl", "too many connections",
        "too many concurrent", "too many messages", "too many sessions", "too much mail", "too many mails",
        "too many emails", "too frequent", "frequency limit", "slow down", "sending too fast", "too fast",
        "exceeded the rate", "maximum rate", "connection limit", "connections exceeded", "message limit*exceeded",
        "hourly limit", "hourly quota", "per hour", "this hour", "sending limit", "send limit", "quota*per day",
        "mail flood", "exceeded*messages per", "message threshold", "too many errors", "too many invalid",
        "too many unknown", "too many bad", "limit on the number of messages", "max number of*messages",
        "max emails per", "number of messages*exceed", "exceeded the maximum number of messages", "emails per hour",
        "relay quota", "daily quota", "sending quota", "daily relay",
        # Exchange's 421 4.3.2, and GoDaddy's IB007.
        "maximum number of concurrent", "max concurrent connections", "max connections",
    )),
    (FailureReason.TOO_MANY_RECIPIENTS, (
        "too many recipients", "too many rcpt", "recipient limit", "recipients exceed", "number of recipients",
        "maximum recipients", "max recipients", "many recipients",
    )),
    (FailureReason.RELAY_DENIED, (
        "relay access denied", "relaying denied", "relaying not", "relay not", "relay denied", "not relay",
        "no relay", "unable to relay", "cannot relay", "relaying is", "relaying prohibited", "relaying mail",
        "relaying to", "relay operation", "relay rejected", "relaying rejected", "relay prohibited",
        "relay is prohibited", "open relay", "we do not relay", "we dont relay", "wont relay", "allowed rcpthosts",
        "use me as a relay", "authentication is required for relay", "attempt to relay", "relay refused",
        "relay this", "mail relay", "not permitted to relay", "not allowed to relay", "refused to relay",
        "no relaying", "is not local and sender not authenticated", "not a local domain", "not an open relay",
        "isnt in my list", "requires authentication", "authentication required", "auth required", "must authenticate",
        "not authenticated", "sender not logged in", "please log in", "smtp auth", "need to authenticate",
        " as a relay ", "configured to relay", "relaying disallowed", "relay disallowed", "unauthorized relay",
        "pop before smtp",
        "check mail before sending", "not logged in", "not local*relay", "relay for this domain",
    )),
)  # fmt: skip

# Phrases about the message.
CONTENT_PHRASES = PhraseTable(
    (FailureReason.TOO_LARGE, (
        "message size", "size limit", "maximum size", "max size", "message too large", "message too big",
        "message is too", "too large", "too big", "size exceed", "exceeds size", "exceeds*maximum", "exceeds*limit",
        "larger than", "maximum message", "message length", "message exceeds", "attachment size",
    )),
    (FailureReason.SPAM, (
        "spam", "unsolicited", " junk", " uce ", " ube ", "bulk mail", "bulk email", "content reject",
        "content denied", "content filter", "message content", "rejected for content", "suspicious", "looks like",
        "unwanted", "blocked by filter", "advert", "bayes", "score", "mail content denied", "csi", "cloudmark",
        "bogofilter", "prohibited content",
    )),
)  # fmt: skip

# Phrases about the route, the host and its policies. Searched late, because the words are ambiguous.
GENERAL_PHRASES = PhraseTable(
    (FailureReason.ROUTING_LOOP, (
        "too many hops", "hop count", "mail loop", "loops back", "routing loop", "looping", "forwarding loop",
        "message loop", "loop detected", "too many received", "best-preference mx", "mail loops", "hops",
    )),
    (FailureReason.EXPIRED, (
        "retry time", "retry timeout", "delivery time expired", "message expired", "retries exceeded", "too old",
        "timed out waiting", "could not be delivered for", "exceeded max*time", "delivery expired", "ive been trying",
        "in the queue too long", "queue too long", "maximum time",
    )),
    (FailureReason.NETWORK, (
        "connection refused", "connection timed out", "connection reset", "connection died", "connection lost",
        "lost connection", "connection closed", "timed out", "timeout", "no route to host", "network is unreachable",
        "network unreachable", "unable to connect", "could not connect", "cannot connect",
        "establish an smtp connection", "unreachable", "broken pipe", "deferred connection", "connection dropped",
        "host is down", "conversation with", "try again later*dns",
    )),
    (FailureReason.DNS, (
        "dns", "name server", "temporary lookup", "name service", "temporary resolution", "could not resolve",
        "cname lookup", "lookup failed",
    )),
    (FailureReason.TLS, ("starttls", " tls ", " ssl ", "certificate", "handshake", "encryption")),
    (FailureReason.POLICY, (
        "access denied", "policy", "policies", "attachment", "preferences", "members only", "members-only",
        "mailing list", "distribution list", "not authorized", "administrative prohibition", "prohibited",
        "by this user", "by the recipient", "rejected by recipient", "moderat", "organizational settings", "captcha",
    )),
    (FailureReason.PROTOCOL, (
        "syntax error", "command not", "unrecognized command", "bad sequence", "out of sequence", "protocol error",
        "bare lf", "bare newline", "bare cr", "malformed", "rfc 5322", "rfc5322", "rfc 2822", "rfc 822", "header",
        " mime", "8bit", "not implemented", "line too long", "lines longer", "invalid character", "non-ascii",
        "missing message-id",
    )),
)  # fmt: skip

# Phrases that fit almost any refusal.
FALLBACK_PHRASES = PhraseTable(
    (FailureReason.HOST_TROUBLE, (
        "try again", "try later", "temporar", "service unavailable", "service not available", "system error",
        "internal error", "local error", "server error", "not currently available", "resources", "overload",
        "too busy", "server busy", "system busy", "come back later", "system load", "config", "mail system",
        "unexpected", "queue file", "server is down", "maintenance", "shutting down", "i/o error", "database",
        "ambiguous", "not unique", "several matches", "multiple matches", "backend", "milter", "please retry",
        "error in processing", "local problem", "unavailable",
    )),
    (FailureReason.POLICY, (
        "access denied", "denied", "not permitted", "not allowed", "permission", "administrative", "administrator",
        "refused", "rejected", "reject", "blocked", "forbidden", "restricted", "security", "unauthorized",
        "not accepted", "unacceptable", "banned", "rule", "disallowed", "violat",
    )),
)  # fmt: skip
