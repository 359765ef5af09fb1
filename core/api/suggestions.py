"""Suggestions for unknown names of fields, parameters and events: names of other email APIs, and similar ones."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

MAX_NAME_LENGTH = 64
# Names used by Resend, SendGrid, Postmark, Amazon SES, Mailgun and others, by our name. Case, "_" and "-" do not count.
OTHER_FIELD_NAMES = {
    "active": "enabled disabled",
    "alias": "slug handle",
    "attachments": "attachment files file inlineattachments inlineimages",
    "bcc": "bccaddresses bccrecipients destination personalizations",
    "cc": "ccaddresses ccrecipients destination personalizations",
    "content": "data path body base64 base64content contentbytes rawcontent",
    "contentId": "cid inlineid",
    "contentType": "type mimetype mime",
    "data": "templatedata templatemodel dynamictemplatedata testrendermodel variables substitutions context params",
    "email": "address emailaddress recipient",
    "emails": "addresses emailaddresses recipients recipientemails",
    "events": "event eventtypes types triggers enabledevents",
    "filename": "name title",
    "from": "sender source fromemail fromaddress fromemailaddress mailfrom",
    "headers": "customheaders",
    "html": "htmlbody htmlcontent htmlpart body content message react",
    "htmlContent": "html htmlbody htmlpart body content",
    "idempotencyKey": "idempotency requestid",
    "metadata": "customargs uniqueargs customdata userdata",
    "name": "domain domainname title templatename",
    "recipients": "to personalizations messages emails destination destinations bulkemailentries messageversions",
    "replyTo": "replytoaddress replytoaddresses replytoemail replytolist",
    "scheduledFor": "scheduledat scheduleat schedule sendat sendon sendtime deliverat deliverytime datetime",
    "subject": "title subjectpart",
    "tags": "tag category categories emailtags label labels",
    "templateData": "templatemodel dynamictemplatedata substitutions variables mergevars globalmergevars params "
    "context model defaulttemplatedata replacementtemplatedata",
    "templateId": "template templatealias templatename templateuuid templateslug",
    "text": "textbody textcontent textpart plain plaintext body content message",
    "textContent": "text textbody textpart plain plaintext body content",
    "to": "recipient recipients toaddresses toemail toemailaddress email address destination personalizations",
    "trackClicks": "tracklinks clicktracking trackingsettings tracking",
    "trackOpens": "opentracking trackingsettings tracking",
    "url": "endpoint target webhookurl callback callbackurl address",
}

OTHER_EVENT_NAMES = {
    "bounced": "hardbounce permanentfail undeliverable inactive",
    "clicked": "linkclick uniqueclicked",
    "complained": "spam spamreport spamcomplaint abuse fbl",
    "deferred": "delayed deliverydelayed deliverydelay softbounce temporaryfail",
    "delivered": "success",
    "failed": "dropped reject rejected error renderingfailure suppressed",
    "opened": "uniqueopened firstopening",
    "sent": "processed accepted send",
    "unsubscribed": "groupunsubscribe subscription subscriptionchange listunsubscribe unsub",
}

OTHER_PARAMETER_NAMES = {
    "after": "cursor position startingafter since offset pagetoken lasteventid",
    "event": "eventtype type",
    "from": "since start startdate startsat starttime fromdate createdfrom createdafter after",
    "limit": "perpage pagesize size count maxresults",
    "page": "pagenumber pageno offset skip",
    "search": "q query text filter email recipient toemail subject address",
    "status": "state messageevents",
    "stream": "messagestream streamid topic topicid",
    "tag": "tags category categories",
    "to": "until end enddate endsat endtime todate createdto createdbefore before",
    "types": "type events event eventtypes kinds",
}


def suggest_field(name: str, fields: Iterable[str]) -> str:
    """Return the fields that a caller probably means by an unknown name, as a sentence; empty if there are none."""
    return _suggest(name, list(fields), OTHER_FIELD_NAMES)


def suggest_parameter(name: str, parameters: Iterable[str]) -> str:
    """Return the query parameters that a caller probably means, as a sentence; empty if there are none."""
    return _suggest(name, list(parameters), OTHER_PARAMETER_NAMES)


def suggest_event(name: str, events: Iterable[str]) -> str:
    """Return the event that a caller probably means by an unknown name, as a sentence; empty if there is none."""
    return _suggest(name, list(events), OTHER_EVENT_NAMES)


def _suggest(name: str, known: Collection[str], other_names: Mapping[str, str]) -> str:
    plain = _normalize(name)
    same = [field for field in known if _normalize(field) == plain]
    others = [field for field in known if plain in other_names.get(field, "").split()]
    return _question(same or others or _nearest(name, known))


def _nearest(name: str, known: Collection[str]) -> list[str]:
    by_lower = {field.lower(): field for field in known}
    return [by_lower[match] for match in difflib.get_close_matches(name[:MAX_NAME_LENGTH].lower(), by_lower, n=1)]


def _question(names: Sequence[str]) -> str:
    """Return the names as in ` Did you mean 'to', 'cc' or 'bcc'?`, or an empty string."""
    if not names:
        return ""
    quoted = [repr(name) for name in names]
    first = ", ".join(quoted[:-1])
    return f" Did you mean {first} or {quoted[-1]}?" if first else f" Did you mean {quoted[-1]}?"


def _normalize(name: str) -> str:
    return name[:MAX_NAME_LENGTH].lower().replace("_", "").replace("-", "")
