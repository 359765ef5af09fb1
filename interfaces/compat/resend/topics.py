"""Resend's API: topics, which are the public bulk streams. See docs/decisions/0179."""

from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.datetimes import format_datetime
from interfaces.compat.drafts import read_choice
from interfaces.compat.errors import invalid_field
from interfaces.compat.resend.resources import Resource
from interfaces.compat.resend.topic_ids import TOPICS, topic_id
from interfaces.compat.resend.views import ResendViewSet
from interfaces.compat.streams import change_stream, create_named_stream
from streams.models import Stream
from streams.services import archive_stream

# `opt_in`: contacts are subscribed until they unsubscribe. `opt_out`: they receive nothing until they subscribe.
# https://resend.com/docs/dashboard/topics/introduction
SUBSCRIBED = "opt_in"
DEFAULTS = (SUBSCRIBED, "opt_out")
PUBLIC = "public"
VISIBILITIES = {name: name for name in (PUBLIC, "private")}


def topic_item(stream: Stream) -> Resource:
    """Return a topic in a list."""
    return {
        "id": topic_id(stream),
        "name": stream.name,
        "description": stream.description,
        "default_subscription": SUBSCRIBED,
        "visibility": PUBLIC,
        "created_at": format_datetime(stream.created_at),
    }


class ResendTopicViewSet(ResendViewSet[Stream]):
    queryset = TOPICS.filter(archived_at=None)
    sending_actions = frozenset({"list", "retrieve"})
    object_name, id_prefix, item = "topic", "str_", staticmethod(topic_item)

    def create(self, request: Request) -> Response:
        _refuse_other_default(self.body.get("default_subscription"))
        stream = create_named_stream(self.workspace, _read(self.body))
        return Response(self.reference(stream), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response({"object": self.object_name, **topic_item(self.find(pk))})

    def update(self, request: Request, pk: str) -> Response:
        return Response(self.reference(change_stream(self.workspace, self.find(pk), _read(self.body))))

    @staticmethod
    def delete_object(stream: Stream) -> None:
        archive_stream(stream.workspace, stream.slug)


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `/v1` that a request sets. Raises InvalidFields."""
    if read_choice(body.get("visibility"), VISIBILITIES, field="visibility") == "private":
        detail = "A topic is public here. Create a stream with `public: false` with POST /v1/streams instead."
        raise invalid_field("visibility", detail)
    return {name: body[name] for name in ("name", "description") if body.get(name) is not None}


def _refuse_other_default(value: Any) -> None:
    if value is None:
        raise invalid_field("default_subscription", "Missing `default_subscription` field.", code="required")
    if read_choice(value, dict.fromkeys(DEFAULTS, value), field="default_subscription") != SUBSCRIBED:
        detail = (
            "Recipients of a topic are subscribed until they unsubscribe, which is `opt_in`. Postrider keeps no list "
            "of subscribers, without which it cannot send to these only."
        )
        raise invalid_field("default_subscription", detail)
