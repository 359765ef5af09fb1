"""Resend's Python library against the compatibility endpoint. Environment: URL, KEY, RUN."""

import os
import uuid
from datetime import UTC, datetime, timedelta

import resend
from resend.exceptions import InvalidApiKeyError, MissingRequiredFieldsError, ResendError, ValidationError

RUN = os.environ["RUN"]
resend.api_url = f"{os.environ['URL']}/compat/resend"
resend.api_key = os.environ["KEY"]


def mail(**fields):
    return {
        "from": "Demo <hello@demo.example>",
        "to": f"py-{RUN}@example.com",
        "subject": "Hi",
        "html": "<p>Hi</p>",
        **fields,
    }


def raises(error_type, call):
    try:
        call()
    except error_type as error:
        return error
    raise AssertionError(f"{error_type.__name__} was not raised")


sent = resend.Emails.send(
    mail(
        cc=["c@example.com"],
        reply_to=["a@demo.example", "b@demo.example"],
        tags=[{"name": "run", "value": RUN}],
        attachments=[{"filename": "a.txt", "content": list(b"Notes")}],
    ),
    {"idempotency_key": f"py-{RUN}"},
)
assert str(uuid.UUID(sent["id"])) == sent["id"]
email = resend.Emails.get(email_id=sent["id"])
assert (email["subject"], email["html"], email["cc"]) == ("Hi", "<p>Hi</p>", ["c@example.com"]), email
assert len(resend.Batch.send([mail(to=f"batch-{RUN}@example.com")] * 2)["data"]) == 2
scheduled = resend.Emails.send(mail(scheduled_at="in 1 hour"))
tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
assert resend.Emails.update({"id": scheduled["id"], "scheduled_at": tomorrow})["id"] == scheduled["id"]
assert resend.Emails.cancel(email_id=scheduled["id"])["id"] == scheduled["id"]
assert resend.Emails.list({"limit": 2})["has_more"]

raises(MissingRequiredFieldsError, lambda: resend.Emails.send(mail(subject="")))
raises(ValidationError, lambda: resend.Emails.send(mail(to="nobody")))
assert raises(ResendError, lambda: resend.Emails.get(email_id=str(uuid.uuid4()))).code == 404
resend.api_key = "re_123"
raises(InvalidApiKeyError, lambda: resend.Emails.send(mail()))
