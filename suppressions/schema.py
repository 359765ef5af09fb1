"""`/v1/suppressions` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_view
from rest_framework import serializers

from api.schema import (
    NOT_FOUND,
    TEXT,
    VALIDATION_ERROR,
    array_of,
    describe_problem,
    object_of,
    page_of,
    paging,
    query,
    response,
)
from api.schema_fields import refine_schema
from suppressions.errors import RecipientSuppressed
from suppressions.models import Suppression
from suppressions.serializers import MAX_ADDRESSES, MAX_SEARCH_LENGTH, SuppressionInput, SuppressionSerializer
from workspaces.api.schema import FULL, READING, keyed_operation

REASONS = Suppression.Reason.values
BOUNCED = {
    "id": "sup_0Uf7n3Kp8WqYzR5vTbLcMd",
    "email": "ada@example.com",
    "reason": "bounce",
    "createdAt": "2026-11-20T09:12:31.482Z",
}
MANUAL = {**BOUNCED, "id": "sup_0Uf8a1Gh6JkQwE4rTyUiOp", "email": "grace@example.com", "reason": "manual"}

RECIPIENT_SUPPRESSED = describe_problem(
    RecipientSuppressed,
    "ada@example.com is on the suppression list (bounce).",
    members={
        "recipients": array_of(
            object_of({"email": TEXT, "field": TEXT, "reason": {"enum": REASONS}, "suppressionId": TEXT})
        )
    },
    example={
        "recipients": [
            {"email": "ada@example.com", "field": "to[0]", "reason": "bounce", "suppressionId": BOUNCED["id"]}
        ]
    },
)


# Exactly one of the two fields.
refine_schema(
    SuppressionInput,
    properties={"emails": {"minItems": 1, "maxItems": MAX_ADDRESSES}},
    oneOf=[{"title": "One", "required": ["email"]}, {"title": "Many", "required": ["emails"]}],
)


class SuppressionListSerializer(serializers.Serializer[Any]):
    locals()["data"] = SuppressionSerializer(many=True)


class UnblockedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    email = serializers.CharField()
    deleted = serializers.BooleanField()


ADDED = PolymorphicProxySerializer(
    "Suppressed", [SuppressionSerializer, SuppressionListSerializer], resource_type_field_name=None
)
ADDED_EXAMPLES = {"One": MANUAL, "Many": {"data": [MANUAL, BOUNCED]}}

suppressions_schema = extend_schema_view(
    list=keyed_operation(
        "listSuppressions",
        "List suppressions",
        "Returns the addresses that this workspace never sends to, newest first.",
        scope=READING,
        responses=[
            response(
                200,
                page_of(SuppressionSerializer, name="SuppressionPage"),
                "A page of suppressions.",
                example={"data": [BOUNCED], "total": 1, "page": 1, "limit": 50},
            )
        ],
        problems=[VALIDATION_ERROR],
        parameters=[
            *paging(default=50),
            query("reason", {"enum": REASONS}, "Only addresses suppressed for this reason."),
            query(
                "search",
                {"type": "string", "maxLength": MAX_SEARCH_LENGTH},
                "Only addresses that contain this text, ignoring case.",
            ),
        ],
    ),
    create=keyed_operation(
        "createSuppression",
        "Suppress addresses",
        f"Suppresses one address (`email`) or up to {MAX_ADDRESSES:,} (`emails`) with the reason `manual`. An address "
        "that is already suppressed keeps its suppression and reason; this is not an error. Case is ignored. With "
        "`emails` the response is `{data: […]}`, in the order of the request.",
        scope=FULL,
        body=SuppressionInput,
        bodies={"One": {"email": "grace@example.com"}, "Many": {"emails": ["grace@example.com", "ada@example.com"]}},
        responses=[
            response(201, ADDED, "At least one address is newly suppressed.", examples=ADDED_EXAMPLES),
            response(200, ADDED, "All addresses were already suppressed.", examples=ADDED_EXAMPLES),
        ],
    ),
    retrieve=keyed_operation(
        "getSuppression",
        "Get a suppression",
        "Returns one suppression.",
        scope=READING,
        responses=[response(200, SuppressionSerializer, "The suppression.", example=BOUNCED)],
        problems=[NOT_FOUND],
    ),
    destroy=keyed_operation(
        "deleteSuppression",
        "Delete a suppression",
        "Removes the address from the list; later emails to it are sent as usual.",
        scope=FULL,
        responses=[
            response(
                200,
                UnblockedSerializer,
                "The suppression was deleted.",
                example={"id": BOUNCED["id"], "email": BOUNCED["email"], "deleted": True},
            )
        ],
        problems=[NOT_FOUND],
    ),
)
