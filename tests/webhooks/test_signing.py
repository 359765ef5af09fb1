"""Signatures of posted events, verified by third-party libraries and by the code samples of the documentation."""

import base64
import hashlib
import hmac
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import standardwebhooks
import svix
from hypothesis import given
from hypothesis import strategies as st

from tests.standards.tools import program
from tests.webhooks.conftest import publish_event
from webhooks.sending.signing import new_secret, plain_signature, signature_headers, standard_signature

DOCS = Path(__file__).resolve().parents[2] / "docs"
VECTOR = json.loads((DOCS / "webhook-vector.json").read_text())
SECRET, BODY = VECTOR["secret"], VECTOR["body"].encode()
LIBRARIES = pytest.mark.parametrize(
    ("library", "error_class"),
    [
        (standardwebhooks.Webhook, standardwebhooks.WebhookVerificationError),
        (svix.Webhook, svix.WebhookVerificationError),
    ],
    ids=["standardwebhooks", "svix"],
)


def signed(*keys: str, age_seconds: int = 0) -> dict[str, str]:
    timestamp = int(time.time()) - age_seconds
    return signature_headers(BODY, message_id="evt_1", timestamp=timestamp, keys=keys or (SECRET,))


@pytest.mark.django_db
def test_the_libraries_verify_a_posted_event(alice, endpoint, receiver, process_queue):
    event_id = publish_event(alice, kind="bounced")
    process_queue()
    (request,) = receiver.received
    for library in (standardwebhooks.Webhook, svix.Webhook):
        library(endpoint.secret).verify(request.body, {name.lower(): v for name, v in request.headers.items()})
    assert (json.loads(request.body)["id"], request.header("webhook-id")) == (event_id, event_id)
    plain = hmac.new(endpoint.secret.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.header("x-service-signature") == plain


@LIBRARIES
def test_tampering_fails(library, error_class):
    headers = signed()
    with pytest.raises(error_class):
        library(SECRET).verify(BODY.replace(b"550", b"551"), headers)
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        value = headers[name]
        # Not the last character, which has unused bits in base64.
        changed = f"{value[:-5]}{'1' if value[-5] != '1' else '2'}{value[-4:]}"
        with pytest.raises(error_class):
            library(SECRET).verify(BODY, {**headers, name: changed})
    with pytest.raises(error_class):
        library(new_secret()).verify(BODY, headers)


@LIBRARIES
@pytest.mark.parametrize(("age", "is_accepted"), [(0, True), (290, True), (310, False), (-290, True), (-310, False)])
def test_an_old_timestamp_fails(library, error_class, age, is_accepted):
    headers = signed(age_seconds=age)
    if is_accepted:
        library(SECRET).verify(BODY, headers)
        return
    with pytest.raises(error_class):
        library(SECRET).verify(BODY, headers)


@LIBRARIES
def test_old_and_new_secret_verify_while_both_are_valid(library, error_class):
    new, old = new_secret(), new_secret()
    headers = signed(new, old)
    for valid in (new, old):
        # Raises if the signature is invalid.
        library(valid).verify(BODY, headers)
    assert headers["x-service-signature"] == plain_signature(BODY, new)
    assert headers["x-service-signature-previous"] == plain_signature(BODY, old)
    assert "x-service-signature-previous" not in signed(new)


def test_the_documented_vector_matches_the_signatures():
    assert plain_signature(BODY, SECRET) == VECTOR["signature"]
    signature = standard_signature(BODY, SECRET, message_id=VECTOR["webhookId"], timestamp=VECTOR["timestamp"])
    assert signature == VECTOR["standardSignature"]
    assert not BODY.isascii()


def test_secrets_are_unique_and_have_256_bits():
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.b64decode(secret.removeprefix("whsec_"))) for secret in secrets} == {32}


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_two_bodies_have_two_signatures(one, other):
    assert (plain_signature(one, SECRET) == plain_signature(other, SECRET)) == (one == other)


# Code appended to each sample. It prints 1 or 0 for a valid body, a changed body, a recent signature and an old one.
HARNESSES = {
    "python": (
        [sys.executable],
        "sample.py",
        """
import json, sys
v = json.load(sys.stdin)
body, secret = v["body"].encode(), v["secret"]
print(int(is_genuine(body, v["signature"], secret)), int(is_genuine(body + b" ", v["signature"], secret)),
      int(is_fresh(body, v["id"], v["timestamp"], v["signatures"], secret)),
      int(is_fresh(body, v["oldId"], v["oldTimestamp"], v["oldSignature"], secret)))
""",
    ),
    "javascript": (
        ["node"],
        "sample.mjs",
        """
import { readFileSync } from "node:fs";
const v = JSON.parse(readFileSync(0, "utf8"));
const body = Buffer.from(v.body);
console.log(+isGenuine(body, v.signature, v.secret), +isGenuine(Buffer.from(v.body + " "), v.signature, v.secret),
  +isFresh(body, v.id, v.timestamp, v.signatures, v.secret),
  +isFresh(body, v.oldId, v.oldTimestamp, v.oldSignature, v.secret));
""",
    ),
    "php": (
        ["php"],
        "sample.php",
        """
$v = json_decode(stream_get_contents(STDIN), true);
$answers = [is_genuine($v['body'], $v['signature'], $v['secret']),
    is_genuine($v['body'] . ' ', $v['signature'], $v['secret']),
    is_fresh($v['body'], $v['id'], $v['timestamp'], $v['signatures'], $v['secret']),
    is_fresh($v['body'], $v['oldId'], $v['oldTimestamp'], $v['oldSignature'], $v['secret'])];
echo implode(' ', array_map('intval', $answers)), PHP_EOL;
""",
    ),
    "go": (
        ["go", "run"],
        "sample.go",
        """
func main() {
	var v map[string]string
	if err := json.NewDecoder(os.Stdin).Decode(&v); err != nil {
		panic(err)
	}
	body := []byte(v["body"])
	for _, yes := range []bool{isGenuine(body, v["signature"], v["secret"]),
		isGenuine([]byte(v["body"]+" "), v["signature"], v["secret"]),
		isFresh(body, v["id"], v["timestamp"], v["signatures"], v["secret"]),
		isFresh(body, v["oldId"], v["oldTimestamp"], v["oldSignature"], v["secret"])} {
		if yes {
			fmt.Print("1 ")
		} else {
			fmt.Print("0 ")
		}
	}
}
""",
    ),
    "ruby": (
        ["ruby"],
        "sample.rb",
        """
require "json"
v = JSON.parse(STDIN.read)
puts([is_genuine(v["body"], v["signature"], v["secret"]), is_genuine(v["body"] + " ", v["signature"], v["secret"]),
      is_fresh(v["body"], v["id"], v["timestamp"], v["signatures"], v["secret"]),
      is_fresh(v["body"], v["oldId"], v["oldTimestamp"], v["oldSignature"], v["secret"])]
  .map { |yes| yes ? 1 : 0 }.join(" "))
""",
    ),
}
# Debian packages.
PACKAGES = {"javascript": "nodejs", "php": "php-cli", "go": "golang-go", "ruby": "ruby"}


@pytest.mark.full
@pytest.mark.parametrize("language", HARNESSES)
def test_the_code_sample_of_the_documentation_verifies(language, tmp_path):
    (interpreter, *rest), name, harness = HARNESSES[language]
    command = [program(interpreter, package=PACKAGES[language]) if language in PACKAGES else interpreter, *rest]
    sample = re.search(rf"```{language}\n(.*?)```", (DOCS / "webhooks.md").read_text(), re.DOTALL)[1]
    source = sample.replace("import (", 'import (\n"encoding/json"\n"fmt"\n"os"') if language == "go" else sample
    (tmp_path / name).write_text(source + harness)
    headers = signed(new_secret(), SECRET)
    values = {
        "secret": SECRET,
        "body": VECTOR["body"],
        "signature": VECTOR["signature"],
        "id": headers["webhook-id"],
        "timestamp": headers["webhook-timestamp"],
        "signatures": headers["webhook-signature"],
        "oldId": VECTOR["webhookId"],
        "oldTimestamp": str(VECTOR["timestamp"]),
        "oldSignature": VECTOR["standardSignature"],
    }
    run = subprocess.run(
        [*command, str(tmp_path / name)], input=json.dumps(values), capture_output=True, text=True, check=False
    )
    assert run.stdout.split() == ["1", "0", "1", "0"], run.stderr
