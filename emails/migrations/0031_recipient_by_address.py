"""An index of recipients by address, for the page of a recipient and for erasure (docs/decisions/0261)."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False
    dependencies = [("emails", "0030_email_by_tag_and_stream")]

    operations = [
        AddIndexConcurrently(
            "recipient", models.Index(Lower("address"), models.F("email"), name="recipient_by_address")
        ),
    ]
