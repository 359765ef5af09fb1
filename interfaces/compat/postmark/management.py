"""Postmark's API: message streams and their suppressions, and templates. See docs/decisions/0180."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import InvalidFields
from core.lib.datetimes import format_datetime
from core.lib.email_addresses import normalize_address
from core.lib.ids import id_number
from core.lib.network.client_address import client_address
from core.workspaces.models import Workspace
from interfaces.compat.drafts import as_object, as_objects, read_address, read_choice, rename_fields
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark import filters, requests, resources
from interfaces.compat.postmark.errors import render_stream_error
from interfaces.compat.postmark.names import INBOUND, OUTBOUND, read_id, shown_id
from interfaces.compat.postmark.templates.push import push_response, read_keys
from interfaces.compat.postmark.templates.requests import filter_templates, read_changes, read_template, validate
from interfaces.compat.postmark.tokens import given_tokens
from interfaces.compat.postmark.views import PostmarkViewSet
from streams.models import MAIN, Stream
from streams.serializers import StreamChanges, StreamInput
from streams.services import (
    archive_stream,
    create_stream,
    existing_stream,
    read_streams,
    unarchive_stream,
    update_stream,
)
from suppressions.models import Suppression
from suppressions.services import delete_suppressions, find_suppressed, suppress_addresses
from templates_app.models import Template
from templates_app.services import create_template, delete_template, find_template, update_template
from templates_app.views import MAX_TEMPLATE_BODY_BYTES

# https://postmarkapp.com/developer/api/message-streams-api
KINDS = {"Transactional": Stream.Kind.TRANSACTIONAL, "Broadcasts": Stream.Kind.BULK}
TYPES = {kind: name for name, kind in KINDS.items()}
HANDLING = {
    "None": Stream.Unsubscribe.NONE,
    "Postmark": Stream.Unsubscribe.LINK,
    "Custom": Stream.Unsubscribe.HEADERS,
}
HANDLING_BY_UNSUBSCRIBE = {unsubscribe: name for name, unsubscribe in HANDLING.items()}
INBOUND_TYPE = "Inbound"
# The time that Postmark keeps an archived stream; Postrider keeps it for ever.
PURGE_AFTER = timedelta(days=45)
MAX_SUPPRESSIONS = 50
MAX_DUMPED = 10_000
ELSEWHERE = f"This address is suppressed in all streams. Delete it in the stream {OUTBOUND}."
# https://postmarkapp.com/developer/api/suppressions-api
INVALID_ADDRESS = "An invalid email address was provided."


class PostmarkStreamViewSet(PostmarkViewSet[Stream]):
    queryset = Stream.objects.all()
    render_error = staticmethod(render_stream_error)
    sending_actions = frozenset({"list", "retrieve"})

    def list(self, request: Request) -> Response:
        query = {name.lower(): text for name, text in request.query_params.dict().items() if text}
        types = {name.lower(): name for name in ("All", *KINDS, INBOUND_TYPE)}
        wanted = read_choice(query.get("messagestreamtype", "all").lower(), types, field="MessageStreamType")
        items = [
            item
            for item in shown_streams(self.workspace)
            if wanted in {"All", item["MessageStreamType"]}
            and (not item["ArchivedAt"] or query.get("includearchivedstreams", "").lower() == "true")
        ]
        return Response({"MessageStreams": items, "TotalCount": len(items)})

    def create(self, request: Request) -> Response:
        kind = read_choice(self.body.get("MessageStreamType"), KINDS, field="MessageStreamType")
        if kind is None:
            raise invalid_field("MessageStreamType", "This field is required.", code="required")
        slug = self.body.get("ID")
        if slug in (OUTBOUND, INBOUND):
            raise invalid_field("ID", f"There is a stream {slug} already.", code="stream_exists")
        fields = StreamInput().run_validation({"id": slug, "kind": kind, **read_fields(self.body)})
        return Response(stream_resource(create_stream(self.workspace, **fields)))

    def retrieve(self, request: Request, stream: str) -> Response:
        if stream == INBOUND:
            return Response(inbound_resource(self.workspace))
        return Response(stream_resource(self._find(stream)))

    def partial_update(self, request: Request, stream: str) -> Response:
        changes = StreamChanges().run_validation(read_fields(self.body))
        found = self._find(stream)
        return Response(
            stream_resource(update_stream(self.workspace, found.slug, changes=changes) if changes else found)
        )

    def archive(self, request: Request, stream: str) -> Response:
        if stream in {OUTBOUND, INBOUND}:
            raise invalid_field("ID", f"The stream {stream} cannot be archived.", code="default_stream")
        resource = stream_resource(archive_stream(self.workspace, self._find(stream).slug))
        return Response({name: resource[name] for name in ("ID", "ServerID", "ExpectedPurgeDate")})

    def unarchive(self, request: Request, stream: str) -> Response:
        return Response(stream_resource(unarchive_stream(self.workspace, self._find(stream).slug)))

    def _find(self, stream: str) -> Stream:
        return existing_stream(self.workspace, read_id(stream, field="ID"))


class PostmarkSuppressionViewSet(PostmarkViewSet[Suppression]):
    """The suppressions that block a stream: its own, and those of the workspace."""

    queryset = Suppression.objects.all()
    render_error = staticmethod(render_stream_error)

    def dump(self, request: Request, stream: str) -> Response:
        found = self._stream(stream)
        query = filters.read_filters(request, known=filters.SUPPRESSIONS)
        rows = filters.filter_suppressions(blocking(self.get_queryset(), found), query, stream=found.slug)
        return Response({"Suppressions": [resources.suppression_resource(row) for row in rows[:MAX_DUMPED]]})

    def create(self, request: Request, stream: str) -> Response:
        addresses, results = self._entries("Suppressed")
        slug, reason = self._stream(stream).slug, Suppression.Reason.MANUAL
        suppress_addresses(self.workspace, addresses=addresses, reason=reason, stream="" if slug == MAIN else slug)
        return Response({"Suppressions": results})

    def delete(self, request: Request, stream: str) -> Response:
        addresses, results = self._entries("Deleted")
        slug = self._stream(stream).slug
        for name in ("", MAIN) if slug == MAIN else (slug,):
            delete_suppressions(self.workspace, addresses=addresses, stream=name)
        return Response(
            {"Suppressions": with_failed(results, find_suppressed(self.workspace.id, addresses, stream=slug))}
        )

    def _stream(self, stream: str) -> Stream:
        return existing_stream(self.workspace, read_id(stream))

    def _entries(self, status: str) -> tuple[list[str], list[resources.Resource]]:
        """Return the valid addresses of a request, and the result of each address: the status, or that it failed."""
        valid, results = [], []
        for entry in as_objects(self.body.get("Suppressions"), "Suppressions", at_most=MAX_SUPPRESSIONS):
            given = entry.get("EmailAddress")
            try:
                address = read_address(given, "EmailAddress")
            except InvalidFields:
                results.append({"EmailAddress": given, "Status": "Failed", "Message": INVALID_ADDRESS})
            else:
                valid.append(address)
                results.append({"EmailAddress": address, "Status": status, "Message": None})
        return valid, results


class PostmarkTemplateViewSet(PostmarkViewSet[Template]):
    queryset = Template.objects.select_related("version")
    sending_actions = frozenset({"list", "retrieve", "validate"})
    reading_actions = frozenset({"validate"})
    body_bytes: ClassVar = dict.fromkeys(("create", "update", "validate"), MAX_TEMPLATE_BODY_BYTES)

    def list(self, request: Request) -> Response:
        rows: QuerySet[Template] = self.get_queryset().defer("version__html", "version__text", "version__locales")
        rows = filter_templates(rows, request.query_params.dict(), layouts := self._layouts)
        items = [resources.template_item(row, layouts) for row in rows[requests.read_slice(request)]]
        return Response({"TotalCount": rows.count(), "Templates": items})

    def create(self, request: Request) -> Response:
        template = create_template(self.workspace, **read_template(self.body))
        return Response(resources.template_item(template, self._layouts))

    def retrieve(self, request: Request, reference: str) -> Response:
        return Response(resources.template_resource(self._find(reference), self._layouts))

    def update(self, request: Request, reference: str) -> Response:
        template = self._find(reference)
        changed = update_template(template, changes=read_changes(self.body, template.kind))
        return Response(resources.template_item(changed, self._layouts))

    def push(self, request: Request) -> Response:
        keys = read_keys(given_tokens(request.META), client=lambda: client_address(request.META))
        return Response(push_response(self.body, keys))

    def destroy(self, request: Request, reference: str) -> Response:
        delete_template(self._find(reference))
        return Response({"ErrorCode": 0, "Message": f"Template {reference} removed."})

    def validate(self, request: Request) -> Response:
        return Response(validate(self.workspace, self.body))

    @property
    def _layouts(self) -> dict[str | None, str]:
        return resources.layout_aliases(self.workspace)

    def _find(self, reference: str) -> Template:
        return find_template(self.workspace, resources.template_ids(self.workspace).get(reference, reference))


def read_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `/v1` that a request sets. Raises InvalidFields."""
    configuration = as_object(body.get("SubscriptionManagementConfiguration"), "SubscriptionManagementConfiguration")
    unsubscribe = read_choice(configuration.get("UnsubscribeHandlingType"), HANDLING, field="UnsubscribeHandlingType")
    fields = rename_fields(body, {"Name": "name", "Description": "description"})
    return {**fields, "unsubscribe": unsubscribe} if unsubscribe else fields


def shown_streams(workspace: Workspace) -> list[resources.Resource]:
    """Return the streams of a workspace, and the inbound one."""
    streams = [stream for slug, stream in read_streams(workspace).items() if slug not in {OUTBOUND, INBOUND}]
    return [*map(stream_resource, streams), inbound_resource(workspace)]


def stream_resource(stream: Stream) -> resources.Resource:
    archived_at = stream.archived_at
    return {
        "ID": shown_id(stream.slug),
        "ServerID": id_number(stream.workspace_id, prefix="ws_"),
        "Name": stream.name,
        "Description": stream.description,
        "MessageStreamType": TYPES[Stream.Kind(stream.kind)],
        "CreatedAt": format_datetime(stream.created_at),
        "UpdatedAt": None,
        "ArchivedAt": format_datetime(archived_at) if archived_at else None,
        "ExpectedPurgeDate": format_datetime(archived_at + PURGE_AFTER) if archived_at else None,
        "SubscriptionManagementConfiguration": {
            "UnsubscribeHandlingType": HANDLING_BY_UNSUBSCRIBE[Stream.Unsubscribe(stream.unsubscribe)]
        },
    }


def inbound_resource(workspace: Workspace) -> resources.Resource:
    """Return the inbound stream, which every workspace shows and no email is in."""
    inbound = Stream(
        workspace=workspace,
        slug=INBOUND,
        name="Inbound",
        unsubscribe=Stream.Unsubscribe.NONE,
        created_at=workspace.created_at,
    )
    return {**stream_resource(inbound), "MessageStreamType": INBOUND_TYPE}


def blocking(rows: QuerySet[Suppression], stream: Stream) -> QuerySet[Suppression]:
    """Return the suppressions that block a stream."""
    found = rows.filter(stream__in=["", stream.slug])
    return found.exclude(stream="", reason=Suppression.Reason.UNSUBSCRIBE) if stream.ignores_unsubscribes else found


def with_failed(results: Sequence[resources.Resource], suppressed: Collection[str]) -> list[resources.Resource]:
    """Return the results of a deletion, failed for addresses that are still suppressed."""
    failed = {"Status": "Failed", "Message": ELSEWHERE}
    return [
        {**result, **failed}
        if result["Status"] != "Failed" and normalize_address(result["EmailAddress"]) in suppressed
        else result
        for result in results
    ]
