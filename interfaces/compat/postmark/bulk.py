"""Postmark's API: bulk requests, one content for many messages."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import PayloadTooLarge, Problem
from core.api.parser import MAX_BODY_BYTES
from core.lib.datetimes import format_datetime
from core.lib.ids import uuid_text
from emails.accept.batches import create_batch
from emails.accept.drafts import Draft
from emails.accept.suppressed import SuppressionPolicy
from emails.models import Email, EmailBatch
from emails.rendered_content import render_compiled
from interfaces.compat.drafts import MAX_GIVEN_HEADERS, as_list, as_object, as_objects, read_drafts, valid_field
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark import requests, resources
from interfaces.compat.postmark.templates.language import translate_sections
from interfaces.compat.postmark.views import PostmarkViewSet, Reader
from templates_app.content import RenderedContent, TemplateContent, compile_without_partials
from templates_app.language.rendering import RenderBudget

# Characters of subjects and bodies rendered for the messages of one request.
MAX_RENDERED = 20 * 1024 * 1024
MESSAGE_FIELDS = ("To", "Cc", "Bcc", "TemplateModel")
# The body of a message until it gets that of the request.
PLACEHOLDER = {"TextBody": "-", "HtmlBody": None, "Attachments": None}


class PostmarkBulkViewSet(PostmarkViewSet[EmailBatch]):
    queryset = EmailBatch.objects.all()
    sending_actions = frozenset({"send", "retrieve"})
    accepting_actions = sending_only_actions = frozenset({"send"})
    body_bytes: ClassVar = {"send": MAX_BODY_BYTES}
    id_prefix = "bat_"
    suppressed = SuppressionPolicy.ACCEPT

    def send(self, request: Request) -> Response:
        stored = self.accept(self._drafts, about=self.operation)
        first = stored.body["results"][0]
        batch_id = Email.objects.filter(pk=first["id"]).values_list("batch_id", flat=True).first()
        body = {"Id": batch_id and uuid_text(batch_id, prefix="bat_"), "Status": "Accepted"}
        return Response({**body, "SubmittedAt": first["createdAt"]}, headers=stored.headers)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(bulk_resource(self.find(pk)))

    def _drafts(self) -> list[Draft | Problem]:
        """Return the messages of the request, in a new batch."""
        drafts = read_messages(self.body, template_ids=resources.template_ids(self.workspace))
        batch = create_batch(self.workspace, limits=self.limits)
        return [replace(draft, batch_id=batch.id) if isinstance(draft, Draft) else draft for draft in drafts]


def read_messages(body: dict[str, Any], *, template_ids: Mapping[str, str]) -> list[Draft | Problem]:
    """Return the draft of each message, or its problem. Raises InvalidFields and ValidationError."""
    messages = as_list(body.get("Messages"), "Messages", at_most=requests.MAX_BATCH)
    if not messages:
        raise invalid_field("Messages", "At least one message is required.", code="required")
    shared = {name: value for name, value in body.items() if name not in {"Messages", *MESSAGE_FIELDS}}
    read_one: Reader = requests.read_email
    if body.get("TemplateId") or body.get("TemplateAlias"):
        read_one = partial(requests.read_email_with_template, template_ids=template_ids)
    writer = _MessageWriter(read_one(shared | _of_message(messages[0])))

    def read(value: Any) -> Draft:
        message = as_object(value, "Messages")
        metadata = {**as_object(shared.get("Metadata"), "Metadata"), **as_object(message.get("Metadata"), "Metadata")}
        headers = [*_headers(shared), *_headers(message)]
        item = {**shared, **PLACEHOLDER, **_of_message(message), "Metadata": metadata, "Headers": headers}
        return writer.write(read_one(item), message)

    return read_drafts(read, messages)


class _MessageWriter:
    """Writes the subject and the bodies of a request into its messages, rendered with the model of each."""

    def __init__(self, content: Draft) -> None:
        self.content = content
        self.budget, self.characters_left = RenderBudget(), MAX_RENDERED

    def write(self, draft: Draft, message: Mapping[str, Any]) -> Draft:
        """Return the draft of a message with its content. Raises Problem and ValidationError."""
        model, content = as_object(message.get("TemplateModel"), "TemplateModel"), self.content
        if draft.template:
            return replace(draft, files=content.files)
        if not model:
            return replace(draft, subject=content.subject, html=content.html, text=content.text, files=content.files)
        rendered = self._render(model)
        return replace(
            draft,
            subject=valid_field("subject", " ".join(rendered.subject.split())),
            html=valid_field("html", rendered.html),
            text=valid_field("text", rendered.text),
            files=content.files,
        )

    def _render(self, model: dict[str, Any]) -> RenderedContent:
        content = self.content
        # Compiled once: the result is cached by its content.
        subject, html, text = map(translate_sections, (content.subject or "", content.html, content.text))
        compiled = compile_without_partials(TemplateContent(subject, html, text))
        rendered = render_compiled(compiled, model, field="TemplateModel", budget=self.budget)
        self.characters_left -= len(rendered.subject) + len(rendered.html) + len(rendered.text)
        if self.characters_left < 0:
            raise PayloadTooLarge("The rendered messages of this request are too large. Use a template.")
        return rendered


def bulk_resource(batch: EmailBatch) -> resources.Resource:
    """Return the progress of a bulk request. Emails that retention deleted no longer count."""
    finished = Email.objects.filter(batch=batch).values_list("finished_at", "subject")[: requests.MAX_BATCH]
    total, done = len(finished), sum(finished_at is not None for finished_at, _ in finished)
    return {
        "Id": uuid_text(batch.id, prefix="bat_"),
        "Status": "Completed" if done == total else "Processing" if done else "Accepted",
        "SubmittedAt": format_datetime(batch.created_at),
        "TotalMessages": total,
        "PercentageCompleted": round(100 * done / total) if total else 100,
        "Subject": finished[0][1] if finished else "",
    }


def _of_message(value: Any) -> dict[str, Any]:
    message = as_object(value, "Messages")
    return {name: message.get(name) for name in MESSAGE_FIELDS}


def _headers(source: Mapping[str, Any]) -> list[dict[str, Any]]:
    return as_objects(source.get("Headers"), "Headers", at_most=MAX_GIVEN_HEADERS)
