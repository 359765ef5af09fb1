"""SendGrid's Python library against the compatibility endpoint. Environment: URL, KEY, RUN."""

import base64
import json
import os

from python_http_client.exceptions import BadRequestsError, UnauthorizedError
from sendgrid import SendGridAPIClient
from sendgrid.helpers.mail import Asm, Attachment, Cc, GroupId, GroupsToDisplay, Mail

RUN = os.environ["RUN"]
HOST = f"{os.environ['URL']}/compat/sendgrid"
client = SendGridAPIClient(os.environ["KEY"], host=HOST)


def mail(to, **fields):
    return Mail(from_email="hello@demo.example", to_emails=to, subject="Hi", html_content="<p>Hi</p>", **fields)


message = mail(f"sgpy-{RUN}@example.com")
message.add_cc(Cc(f"sgpycc-{RUN}@example.com"))
message.attachment = Attachment(base64.b64encode(b"Notes").decode(), "notes.txt", "text/plain")
response = client.send(message)
assert (response.status_code, response.body) == (202, b""), response
assert response.headers["X-Message-Id"]
assert client.send(mail(["a@example.com", "b@example.com"], is_multiple=True)).status_code == 202
api = client.client
assert api.suppression.bounces.get(query_params={"limit": 1}).status_code == 200
template = json.loads(api.templates.post({"name": f"py {RUN}", "generation": "dynamic"}).body)
version = {"subject": "Hi", "html_content": "<p>Hi</p>"}
assert api.templates._(template["id"]).versions.post(version).status_code == 201
assert api.templates._(template["id"]).delete().status_code == 204
group = json.loads(api.asm.groups.post({"name": f"Python {RUN}", "description": "Monthly"}).body)
message = mail(f"sgpy-group-{RUN}@example.com")
message.asm = Asm(GroupId(group["id"]), GroupsToDisplay([group["id"]]))
assert client.send(message).status_code == 202
assert api.asm.groups._(group["id"]).suppressions.post({"recipient_emails": ["gone@example.com"]}).status_code == 201
assert json.loads(api.asm.groups._(group["id"]).suppressions.get().body) == ["gone@example.com"]
assert api.asm.groups._(group["id"]).delete().status_code == 204
address = f"sgpy-gone-{RUN}@example.com"
assert api.asm.suppressions._("global").post({"recipient_emails": [address]}).status_code == 201
assert api.asm.suppressions._("global")._(address).delete().status_code == 204
assert json.loads(api.whitelabel.domains.get().body)[0]["dns"]["dkim"]["type"] == "txt"
assert api.user.webhooks.event.settings.get().status_code == 200
parse, setting = api.user.webhooks.parse.settings, {"hostname": os.environ["HOSTNAME"], "url": "https://app.example/p"}
assert parse.post(setting).status_code == 201
assert json.loads(parse._(setting["hostname"]).get().body) == {**setting, "spam_check": False, "send_raw": False}
assert parse._(setting["hostname"]).delete().status_code == 204

for error_type, given, api in (
    (BadRequestsError, mail("ada@com"), client),
    (UnauthorizedError, mail("a@example.com"), SendGridAPIClient("SG.wrong", host=HOST)),
):
    try:
        api.send(given)
    except error_type:
        continue
    raise AssertionError(f"{error_type.__name__} was not raised")
