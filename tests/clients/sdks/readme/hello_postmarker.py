"""The first example of postmarker, with another base URL and key. Environment: URL, KEY, TO."""

import os

from postmarker.core import PostmarkClient

# postmarker drops the path of a URL: this needs COMPAT_AT_ROOT=postmark.
postmark = PostmarkClient(server_token=os.environ["KEY"], root_api_url=os.environ["URL"])

sent = postmark.emails.send(
    From="hello@demo.example",
    To=os.environ["TO"],
    ReplyTo="replies@demo.example",
    Subject="hello world",
    HtmlBody="<html><body><strong>it works!</strong></body></html>",
)
print(sent["MessageID"])
