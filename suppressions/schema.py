"""`/v1/suppressions` in the OpenAPI document."""

from drf_spectacular.utils import PolymorphicProxySerializer

from core.api.schema import Operation, response
from core.api.schema_fields import refine_schema
from core.workspaces.api.schema import keyed_view
from streams.errors import StreamNotFound
from suppressions.serializers import (
    MAX_ADDRESSES,
    SuppressionInput,
    SuppressionListSerializer,
    SuppressionSerializer,
    UnblockedSerializer,
)

BOUNCED = {
    "id": "sup_0Uf7n3Kp8WqYzR5vTbLcMd",
    "email": "ada@example.com",
    "reason": "bounce",
    "createdAt": "2026-11-20T09:12:31.482Z",
}
MANUAL = {**BOUNCED, "id": "sup_0Uf8a1Gh6JkQwE4rTyUiOp", "email": "grace@example.com", "reason": "manual"}

# Exactly one of the two fields.
refine_schema(
    SuppressionInput,
    properties={"emails": {"minItems": 1, "maxItems": MAX_ADDRESSES}},
    oneOf=[{"title": "One", "required": ["email"]}, {"title": "Many", "required": ["emails"]}],
)

ADDED = PolymorphicProxySerializer(
    "Suppressed", [SuppressionSerializer, SuppressionListSerializer], resource_type_field_name=None
)
ADDED_EXAMPLES = {"One": MANUAL, "Many": {"data": [MANUAL, BOUNCED]}}

suppressions_schema = keyed_view(
    list=Operation(
        "listSuppressions",
        "List suppressions",
        "Returns the addresses that this workspace never sends to, newest first.",
        response(SuppressionSerializer, "A page of suppressions.", BOUNCED),
    ),
    create=Operation(
        "createSuppression",
        "Suppress addresses",
        f"Suppresses one address (`email`) or up to {MAX_ADDRESSES:,} (`emails`) with the reason `manual`. An address "
        "that is already suppressed keeps its suppression and reason; this is not an error. Case is ignored. With "
        "`emails` the response is `{data: […]}`, in the order of the request. With `stream`, only this stream is "
        "blocked.",
        [
            response(ADDED, "At least one address is newly suppressed.", examples=ADDED_EXAMPLES, status=201),
            response(ADDED, "All addresses were already suppressed.", examples=ADDED_EXAMPLES),
        ],
        problems=[StreamNotFound],
        body=SuppressionInput,
        bodies={"One": {"email": "grace@example.com"}, "Many": {"emails": ["grace@example.com", "ada@example.com"]}},
    ),
    retrieve=Operation(
        "getSuppression",
        "Get a suppression",
        "Returns one suppression.",
        response(SuppressionSerializer, "The suppression.", BOUNCED),
    ),
    destroy=Operation(
        "deleteSuppression",
        "Delete a suppression",
        "Removes the address from the list; later emails to it are sent as usual.",
        response(
            UnblockedSerializer,
            "The suppression was deleted.",
            {"id": BOUNCED["id"], "email": BOUNCED["email"], "deleted": True},
        ),
    ),
)
