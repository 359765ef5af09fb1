"""Topics in the emails of Resend's API."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from core.lib.ids import from_any_spelling, uuid_text
from core.workspaces.models import Workspace
from emails.accept.drafts import Draft
from emails.models import Email
from interfaces.compat.errors import invalid_field
from streams.models import MAIN, Stream
from streams.services import read_streams

TOPICS = Stream.objects.filter(kind=Stream.Kind.BULK, public=True)


def topic_id(stream: Stream) -> str:
    return uuid_text(stream.id, prefix="str_")


def email_topic(email: Email) -> str | None:
    """Return the topic of an email; None if its stream is not one."""
    if email.stream == MAIN:
        return None
    stream = TOPICS.filter(workspace=email.workspace_id, slug=email.stream).first()
    return topic_id(stream) if stream else None


class TopicReader:
    """Reads the topics of the emails of a request, with one query for all of them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._slugs: Mapping[str, str] | None = None

    def reader(self, read: Callable[[Any], Draft]) -> Callable[[Any], Draft]:
        """Return a function that reads an email with its topic. read: without it."""

        def read_with_topic(value: Any) -> Draft:
            draft = read(value)
            return replace(draft, stream=self._slug(value["topic_id"])) if value.get("topic_id") else draft

        return read_with_topic

    def _slug(self, topic: Any) -> str:
        """Return the stream of a topic, or of the id of a stream in `/v1`. Raises InvalidFields."""
        if self._slugs is None:
            streams = read_streams(self.workspace)
            self._slugs = {stream.id: slug for slug, stream in streams.items()} | {slug: slug for slug in streams}
        found = self._slugs.get(from_any_spelling(topic, prefix="str_")) if isinstance(topic, str) else None
        if found is None:
            raise invalid_field("topic_id", "There is no topic with this id.")
        return found
