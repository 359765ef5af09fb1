"""Signatures of posted events, verified by third-party libraries and by the code samples of the documentation."""

import base64
import hashlib
import hmac
import json
import re
import subprocess
import time
from pathlib import Path

import pytest
import standardwebhooks
import svix
from hypothesis import given
from hypothesis import strategies as st

from tests.console.documentation.conftest import LANGUAGES
from tests.webhooks.conftest import publish_event
from webhooks.sending.signing import new_secret, plain_signature, signature_headers, standard_signature

DOCS = Path(__file__).resolve().parents[2] / "docs"
VECTOR = json.loads((DOCS / "webhook-vector.json").read_text())
SECRET, BODY = VECTOR["secret"], VECTOR["body"].encode()
LIBRARIES = (
    (standardwebhooks.Webhook, standardwebhooks.WebhookVerificationError),
    (svix.Webhook, svix.WebhookVerificationError),
)


def signed(*keys: str, age_seconds: int = 0) -> dict[str, str]:
    timestamp = int(time.time()) - age_seconds
    return signature_headers(BODY, message_id="evt_1", timestamp=timestamp, keys=keys or (SECRET,))


@pytest.mark.django_db
def test_the_libraries_verify_a_posted_event(alice, endpoint, receiver, process_queue):
    event_id = publish_event(alice, kind="bounced")
    process_queue()
    (request,) = receiver.received
    for library, _ in LIBRARIES:
        library(endpoint.secret).verify(request.body, {name.lower(): v for name, v in request.headers.items()})
    assert (json.loads(request.body)["id"], request.header("webhook-id")) == (event_id, event_id)
    plain = hmac.new(endpoint.secret.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.header("x-service-signature") == plain


@pytest.mark.parametrize(("library", "error_class"), LIBRARIES, ids=["standardwebhooks", "svix"])
def test_a_library_refuses_changes_and_old_timestamps_and_accepts_both_secrets(library, error_class):
    headers, new, old = signed(), new_secret(), new_secret()
    genuine = [(SECRET, BODY, signed(age_seconds=age)) for age in (0, 290, -290)]
    genuine += [(secret, BODY, signed(new, old)) for secret in (new, old)]
    for secret, body, valid in genuine:
        # Raises if the signature is invalid.
        library(secret).verify(body, valid)

    forged = [(SECRET, BODY, signed(age_seconds=age)) for age in (310, -310)]
    forged += [(SECRET, BODY.replace(b"550", b"551"), headers), (new, BODY, headers)]
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        value = headers[name]
        # Not the last character, which has unused bits in base64.
        changed = f"{value[:-5]}{'1' if value[-5] != '1' else '2'}{value[-4:]}"
        forged.append((SECRET, BODY, {**headers, name: changed}))
    for secret, body, invalid in forged:
        with pytest.raises(error_class):
            library(secret).verify(body, invalid)


def test_a_plain_signature_is_added_for_the_old_secret_while_it_is_valid():
    new, old = new_secret(), new_secret()
    headers = signed(new, old)
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


# Code appended to each sample. It reads the arguments of calls of both functions, and prints their answers as 1 and 0.
HARNESSES = {
    "python": """
import json, sys
for name, body, *rest in json.load(sys.stdin):
    print(int((is_genuine if name == "plain" else is_fresh)(body.encode(), *rest)))
""",
    "javascript": """
import { readFileSync } from "node:fs";
for (const [name, body, ...rest] of JSON.parse(readFileSync(0, "utf8")))
  console.log(+(name === "plain" ? isGenuine : isFresh)(Buffer.from(body), ...rest));
""",
    "php": """
foreach (json_decode(stream_get_contents(STDIN), true) as $call)
    echo intval(($call[0] === 'plain' ? 'is_genuine' : 'is_fresh')(...array_slice($call, 1))), PHP_EOL;
""",
    "go": """
func main() {
	var calls [][]string
	if err := json.NewDecoder(os.Stdin).Decode(&calls); err != nil {
		panic(err)
	}
	for _, c := range calls {
		if c[0] == "plain" && isGenuine([]byte(c[1]), c[2], c[3]) ||
			c[0] == "standard" && isFresh([]byte(c[1]), c[2], c[3], c[4], c[5]) {
			fmt.Println("1")
		} else {
			fmt.Println("0")
		}
	}
}
""",
    "ruby": """
require "json"
JSON.parse(STDIN.read).each { |name, *rest| puts send(name == "plain" ? :is_genuine : :is_fresh, *rest) ? 1 : 0 }
""",
}


@pytest.mark.full
@pytest.mark.parametrize("language", HARNESSES)
def test_the_code_sample_of_the_documentation_verifies(language, tmp_path):
    sample = re.search(rf"```{language}\n(.*?)```", (DOCS / "webhooks.md").read_text(), re.DOTALL)[1]
    source = sample.replace("import (", 'import (\n"encoding/json"\n"fmt"\n"os"') if language == "go" else sample
    file = tmp_path / LANGUAGES[language].file
    file.write_text(source + HARNESSES[language])
    body, headers = VECTOR["body"], signed(new_secret(), SECRET)
    fresh = [headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")]
    calls = [
        ["plain", body, VECTOR["signature"], SECRET],
        ["plain", f"{body} ", VECTOR["signature"], SECRET],
        ["standard", body, *fresh, SECRET],
        ["standard", body, VECTOR["webhookId"], str(VECTOR["timestamp"]), VECTOR["standardSignature"], SECRET],
    ]
    run = subprocess.run(
        LANGUAGES[language].arguments(file), input=json.dumps(calls), capture_output=True, text=True, check=False
    )
    assert run.stdout.split() == ["1", "0", "1", "0"], run.stderr
