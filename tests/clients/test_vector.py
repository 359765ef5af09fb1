"""The shared test vector of webhook signatures, in the specification and in the Python library."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest
from postrider_client import WebhookVerificationError, verify_webhook
from standardwebhooks import Webhook

from tests.stack.stack import REPOSITORY

VECTOR = json.loads((REPOSITORY / "docs" / "webhook-vector.json").read_text())
BODY, SECRET, SIGNATURE = VECTOR["body"], VECTOR["secret"], VECTOR["signature"]
HEADERS = {
    "webhook-id": VECTOR["webhookId"],
    "webhook-timestamp": str(VECTOR["timestamp"]),
    "webhook-signature": VECTOR["standardSignature"],
}
LONG = float("inf")


def test_the_vector_matches_the_specification():
    assert hmac.new(SECRET.encode(), BODY.encode(), hashlib.sha256).hexdigest() == SIGNATURE
    key = base64.b64decode(SECRET.removeprefix("whsec_"), validate=True)
    signed = f"{VECTOR['webhookId']}.{VECTOR['timestamp']}.{BODY}".encode()
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert VECTOR["standardSignature"] == f"v1,{expected}"


def test_the_vector_matches_the_standard_webhooks_library():
    at = datetime.fromtimestamp(VECTOR["timestamp"], UTC)
    assert Webhook(SECRET).sign(VECTOR["webhookId"], at, BODY) == VECTOR["standardSignature"]


def test_both_forms_are_verified():
    upper = {name.title(): value for name, value in HEADERS.items()}
    upper["Webhook-Signature"] = f"v1,AAAA v2,x {VECTOR['standardSignature']}"
    for body in (BODY, BODY.encode(), bytearray(BODY.encode())):
        event = verify_webhook(body, SIGNATURE, SECRET)
        assert (event.event, event.data["to"]) == ("bounced", "zoë@example.com"), type(body)
        for headers in (HEADERS, upper):
            assert verify_webhook(body, headers, SECRET, tolerance_seconds=LONG) == event, type(body)


OTHER = "whsec_" + base64.b64encode(b"another").decode()
REJECTED = [
    (BODY + " ", SIGNATURE, SECRET),
    (BODY, "0" + SIGNATURE[1:], SECRET),
    (BODY, SIGNATURE.upper(), SECRET),
    (BODY, "", SECRET),
    (BODY, "ä", SECRET),
    (BODY, SIGNATURE, OTHER),
    (BODY, SIGNATURE, ""),
    (BODY, SIGNATURE, None),
    (BODY, HEADERS, OTHER),
    (BODY, HEADERS, "whsec_***"),
    (BODY, {**HEADERS, "webhook-id": "whd_other"}, SECRET),
    (BODY, {**HEADERS, "webhook-timestamp": "NaN"}, SECRET),
    (BODY, {**HEADERS, "webhook-signature": "v1,"}, SECRET),
    (BODY, {"x-service-signature": SIGNATURE}, SECRET),
    (json.loads(BODY), SIGNATURE, SECRET),
]


def test_everything_else_is_rejected():
    assert [row for row in REJECTED if is_verified(*row)] == []


def is_verified(body, header, secret):
    try:
        return verify_webhook(body, header, secret, tolerance_seconds=LONG)
    except WebhookVerificationError:
        return False


def test_an_old_delivery_is_rejected():
    with pytest.raises(WebhookVerificationError, match="clock"):
        verify_webhook(BODY, HEADERS, SECRET)
