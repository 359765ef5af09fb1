# Generated from docs/openapi.json by bin/clients.py. Changes are lost.
"""Exports of people: `client.subject_exports`."""

from postrider_client.answers import SubjectExport
from postrider_client.transport import Call, Transport
from postrider_client.wire import body_of, read


class SubjectExports:
    """Exports of people: `client.subject_exports`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, email: str) -> SubjectExport:
        """Export a person.

        Makes a file of the data of an address in the workspace: a zip with JSON, and the messages that the person
        received or sent. It is kept for seven days. It takes seconds to minutes.

        email: The address of the person.

        Raises PlanLimitReached.
        """
        body = body_of(email=email)
        call = Call("POST", ["subject-exports"], body=body, is_repeatable=True)
        return read(SubjectExport, self._transport.json(call))

    def get(self, export_id: str) -> SubjectExport:
        """Get an export of a person.

        Returns the state of an export, what it has, and where its file can be downloaded.
        """
        return read(SubjectExport, self._transport.json(Call("GET", ["subject-exports", export_id])))

    def download(self, export_id: str) -> bytes:
        """Download an export of a person.

        Returns the file of a completed export; 404 before, and once it has expired.
        """
        return (self._transport.reply(Call("GET", ["subject-exports", export_id, "download"]))).body
