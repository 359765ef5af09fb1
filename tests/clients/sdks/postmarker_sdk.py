"""postmarker against the compatibility endpoint at the root. Environment: URL, KEY, RUN."""

import os

from postmarker.core import PostmarkClient
from postmarker.exceptions import ClientError

RUN = os.environ["RUN"]
client = PostmarkClient(server_token=os.environ["KEY"], root_api_url=os.environ["URL"])
sent = client.emails.send(
    From="hello@demo.example",
    To=[f"pmpy-{RUN}@example.com"],
    Subject="Hi",
    HtmlBody="<p>Hi</p>",
    Metadata={"run": RUN},
    Headers={"X-A": "1"},
    MessageStream="outbound",
)
assert (sent["ErrorCode"], sent["To"]) == (0, f"pmpy-{RUN}@example.com"), sent
batch = client.emails.send_batch(
    {"From": "hello@demo.example", "To": "a@example.com", "Subject": "Hi", "TextBody": "Hi"},
    {"From": "hello@demo.example", "To": "b@example.com", "Subject": "Hi", "TextBody": "Hi"},
)
assert [one["ErrorCode"] for one in batch] == [0, 0], batch
assert client.messages.outbound.get(sent["MessageID"]).Subject == "Hi"
assert client.stats.overview()["Sent"] >= 3
assert len(client.stats.sends(fromdate="2026-01-01", todate="2026-01-31")["Days"]) == 31
assert client.bounces.deliverystats["Bounces"][0]["Name"] == "All"
assert client.bounces.all(count=1) is not None
assert isinstance(client.bounces.tags, list)
try:
    client.emails.send(From="hi@elsewhere.example", To="a@example.com", Subject="Hi", TextBody="Hi")
except ClientError as error:
    code = error.error_code
else:
    raise AssertionError("ClientError was not raised")
assert code == 400, code
