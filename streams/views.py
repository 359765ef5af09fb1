"""`/v1/streams`: create, list, retrieve, change, archive, unarchive."""

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import PagePagination
from core.workspaces.api.viewsets import WorkspaceViewSet
from streams.counts import add_counts, get_counted_stream
from streams.models import Stream
from streams.schema import streams_schema
from streams.serializers import CountedStreamSerializer, StreamChanges, StreamInput, StreamSerializer
from streams.services import archive_stream, create_stream, read_streams, unarchive_stream, update_stream


@streams_schema
class StreamViewSet(WorkspaceViewSet[Stream]):
    queryset = Stream.objects.all()
    serializer_class = StreamSerializer
    sending_actions = frozenset({"list", "retrieve"})
    lookup_value_regex = "[^/]+"

    def list(self, request: Request) -> Response:
        pages = PagePagination()
        counted = add_counts(self.workspace, read_streams(self.workspace).values())
        streams = pages.paginate_queryset(counted, request)
        return pages.get_paginated_response(CountedStreamSerializer(streams, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(CountedStreamSerializer(get_counted_stream(self.workspace, pk)).data)

    def create(self, request: Request) -> Response:
        stream = create_stream(self.workspace, **self.valid(StreamInput))
        return Response(StreamSerializer(stream).data, status=status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        stream = update_stream(self.workspace, pk, changes=self.valid(StreamChanges))
        return Response(StreamSerializer(stream).data)

    @action(detail=True, methods=["post"])
    def archive(self, request: Request, pk: str) -> Response:
        return Response(StreamSerializer(archive_stream(self.workspace, pk)).data)

    @action(detail=True, methods=["post"])
    def unarchive(self, request: Request, pk: str) -> Response:
        return Response(StreamSerializer(unarchive_stream(self.workspace, pk)).data)
