"""Forms that answer and forward a received email (docs/decisions/0320)."""

import hashlib
from collections.abc import Iterator
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from console.dashboard.pages.emails.resend import NONCE
from console.dashboard.ui.forms import ApiForm
from core.api.errors import Problem
from core.lib.email_addresses import InvalidAddress, parse_address
from core.workspaces.account_status import refuse_inactive, refuse_suspended
from core.workspaces.api.throttling import refuse_excess, take_request
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from domains.receiving.services import reply_domain
from domains.services import find_sending_domains
from emails.accept.answers import answer_subject
from emails.accept.idempotency import IdempotencyKey
from emails.accept.rules.emails import SendInput
from emails.accept.rules.fields import MAX_SUBJECT_LENGTH
from emails.models import Email
from receiving.answers.sent import answer_email
from receiving.api.serializers import MAX_ADDRESS, ForwardInput
from receiving.forwarding.forwards import forward_email, forwarding_address
from receiving.models import Forward, ReceivedEmail

# The local part of a suggested sender if the email was sent to an address that nobody remembers.
LOCAL_PART = "support"
MAX_SUGGESTIONS = 10


class AnswerForm(ApiForm):
    serializer = SendInput
    wire_names = {"sender": "from", "subject": "subject", "text": "text", "reply_tracking": "replyTracking"}

    sender = forms.CharField(
        label=gettext_lazy("From"),
        max_length=512,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off", "autocapitalize": "none", "list": "senders"}),
        help_text=gettext_lazy("An address of a domain of this workspace, with or without a name."),
    )
    subject = forms.CharField(
        label=gettext_lazy("Subject"),
        max_length=MAX_SUBJECT_LENGTH,
        required=False,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off"}),
        help_text=gettext_lazy("Leave empty for the subject of the email with Re: in front."),
    )
    text = forms.CharField(
        label=gettext_lazy("Text"), widget=UnfoldAdminTextareaWidget({"rows": 10, "autofocus": True}), strip=False
    )
    reply_tracking = forms.BooleanField(
        label=gettext_lazy("Receive replies here"),
        required=False,
        initial=True,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("Reply-To becomes a signed address, by which they are found."),
    )

    def __init__(self, data: Any, *, email: ReceivedEmail, senders: list[str]) -> None:
        self.email = email
        sender = senders[0] if senders else ""
        super().__init__(data, initial={"sender": sender, "subject": answer_subject(email.subject)})
        if not reply_domain(email.workspace, from_domain=sender.rpartition("@")[2].rstrip(">")):
            del self.fields["reply_tracking"]

    def clean_text(self) -> str:
        # A form has CRLF at line ends.
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        body = super().request_body(cleaned)
        subject = {} if cleaned["subject"] else {"subject": None}
        return {**body, **subject, "inReplyToId": self.email.id, "trackOpens": False, "trackClicks": False}

    def send(self, request: HttpRequest) -> str | None:
        """Send the answer; return its id, or None with a form error. The same form sends the same answer once."""
        draft, _ = self.values
        return self.attempt(lambda: _answer(self.email, draft, _idempotency_key(request, self.email)))


class ForwardForm(ApiForm):
    serializer, wire_names = ForwardInput, {"to": "to"}

    to = forms.CharField(
        label=gettext_lazy("To"),
        max_length=MAX_ADDRESS,
        widget=UnfoldAdminTextInputWidget(
            {
                "autofocus": True,
                "autocomplete": "off",
                "autocapitalize": "none",
                "list": "targets",
                "inputmode": "email",
            }
        ),
        help_text=gettext_lazy("The first time, a link is sent to the address. Its owner has to confirm it."),
    )

    def send(self, email: ReceivedEmail) -> Forward | None:
        """Forward the email; return None, with a form error, if that is refused."""
        return self.attempt(lambda: _forward(email, self.values["to"]))


def suggest_senders(workspace: Workspace, email: ReceivedEmail, answered: Email | None) -> list[str]:
    """Return addresses from which the workspace can answer, the likeliest first.

    answered: the sent email that the received one answers.
    """
    found = list(dict.fromkeys(_senders(workspace, email, answered)))
    domains = {text: domain for text in found if (domain := _domain(text))}
    usable = find_sending_domains(workspace, set(domains.values()), NO_LIMITS)
    return [text for text, domain in domains.items() if not isinstance(usable[domain], Problem)][:MAX_SUGGESTIONS]


def _senders(workspace: Workspace, email: ReceivedEmail, answered: Email | None) -> Iterator[str]:
    is_reply_address = email.reply_matched_by == ReceivedEmail.MatchedBy.ADDRESS
    if not is_reply_address:
        yield forwarding_address(email.recipient)
    if answered:
        yield answered.sender
    for name in workspace.domains.order_by("created_at").values_list("name", flat=True):
        yield f"{LOCAL_PART}@{name}"


def _domain(text: str) -> str:
    try:
        return parse_address(text).domain
    except InvalidAddress:
        return ""


def _answer(email: ReceivedEmail, draft: Any, key: IdempotencyKey | None) -> str:
    refuse_excess(take_request(email.workspace))
    return answer_email(email, draft=draft, key=key)


def _forward(email: ReceivedEmail, to: str) -> Forward:
    refuse_excess(take_request(email.workspace))
    refuse_suspended(email.workspace)
    refuse_inactive(email.workspace)
    return forward_email(email, to=to)


def _idempotency_key(request: HttpRequest, email: ReceivedEmail) -> IdempotencyKey | None:
    """Return the key of a form with its values: pressed twice it sends once, changed and sent again it sends both."""
    nonce = request.POST.get("nonce", "")
    if not NONCE.fullmatch(nonce):
        return None
    values = "\0".join(request.POST.get(name, "") for name in AnswerForm.wire_names)
    digest = hashlib.sha256(values.encode("utf-8", "replace")).hexdigest()[:32]
    return IdempotencyKey(f"dashboard {nonce} {digest}", operation="answer", fingerprint=email.id, is_strict=True)
