"""The first example of SendGrid's Python library, with another base URL and key. Environment: URL, KEY, TO."""

import os

from sendgrid import SendGridAPIClient
from sendgrid.helpers.mail import Mail, ReplyTo

message = Mail(
    from_email="hello@demo.example",
    to_emails=os.environ["TO"],
    subject="hello world",
    html_content="<strong>it works!</strong>",
)
message.reply_to = ReplyTo("replies@demo.example")
sg = SendGridAPIClient(os.environ["KEY"], host=f"{os.environ['URL']}/compat/sendgrid")
response = sg.send(message)
print(response.headers["X-Message-Id"])
