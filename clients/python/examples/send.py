"""Send an email with an attachment. Set POSTRIDER_URL, POSTRIDER_API_KEY and FROM in the environment."""

import os

from postrider_client import Attachment, Postrider, QuotaExceeded, RecipientSuppressed

with Postrider() as client:
    try:
        accepted = client.emails.send(
            from_=os.environ["FROM"],
            to="delivered+example@simulator.example",
            subject="Your invoice",
            html="<p>Thank you! The invoice is attached.</p>",
            attachments=[Attachment("invoice.txt", b"1042: 42.00 EUR\n")],
            tags=["invoice"],
        )
        print(accepted.id, "is", client.emails.get(accepted.id).status)
        print("done")
    except RecipientSuppressed as error:
        print("not sent to:", error.recipients)
    except QuotaExceeded as error:
        print("quota exceeded until", error.resets_at)
