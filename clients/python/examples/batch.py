"""Create a template and send a batch. Set POSTRIDER_URL, POSTRIDER_API_KEY and FROM in the environment."""

import os

from postrider_client import BatchRecipient, Postrider

with Postrider() as client:
    template = client.templates.create(
        name="Welcome", subject="Welcome, {{name}}", html_content="<p>Hello {{name}}!</p>"
    )
    batch = client.emails.batch(
        from_=os.environ["FROM"],
        template_id=template.id,
        recipients=[
            BatchRecipient(f"delivered+{name}@simulator.example", template_data={"name": name})
            for name in ("Ada", "Grace")
        ],
        tags=["welcome"],
    )
    for email in client.emails.list(tag="welcome"):
        print(email.to, email.status)
    client.templates.delete(template.id)
    print(batch.queued, "accepted,", len(batch.rejected), "rejected; done")
