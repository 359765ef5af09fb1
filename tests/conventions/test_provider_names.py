"""The packages below compat know no provider by name. Some words of theirs have another reason."""

import re
import subprocess
from collections import defaultdict

from tests.stack.stack import REPOSITORY

BELOW = (
    "alerts", "analytics", "core", "domains", "emails", "events", "receiving", "streams", "suppressions",
    "templates_app", "webhooks",
)  # fmt: skip
PROVIDER = re.compile(r"[\w-]*(?:resend|postmark|sendgrid)[\w-]*", re.IGNORECASE)
# `POST /v1/emails/:id/resend`, an operation of Postrider: its names in code, the OpenAPI document and prose.
OPERATION = {"resend", "Resend", "resendEmail", "resend_email", "ResendInput"}
PERMITTED = {
    "emails/accept/services.py": OPERATION,
    "emails/api/inputs.py": OPERATION,
    "emails/api/openapi.py": OPERATION,
    "emails/api/views.py": OPERATION,
    "emails/errors.py": OPERATION,
    "emails/upkeep/retention.py": OPERATION,
    # The number of a stream exists for one dialect only.
    "streams/models.py": {"SendGrid"},
    # The domains of their test addresses, and pages that describe these.
    "core/delivery/transports/simulator.py": {"Resend", "Postmark", "SendGrid", "resend", "postmarkapp", "sendgrid"},
    # Danish and Norwegian for a forwarded message.
    "receiving/reading/quote_patterns.py": {"videresendt"},
    # Names of fields that other services use: suggestions for callers that give one of them.
    "core/api/suggestions.py": {"Resend", "Postmark", "SendGrid"},
}


def test_no_package_below_compat_names_a_provider():
    listed = subprocess.run(["git", "ls-files", *BELOW], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    names = defaultdict(set)
    for path in listed.stdout.split():
        names[path] = {path, *PROVIDER.findall((REPOSITORY / path).read_text("utf-8"))} - {path}
        names[path] |= set(PROVIDER.findall(path))
    assert {path: found for path in names if (found := names[path] - PERMITTED.get(path, set()))} == {}
    assert PERMITTED.keys() <= {path for path, found in names.items() if found}
