"""Indexes for the filters `tag` and `stream` of the email list, without emails that have no tag or are in `main`."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Emails are accepted while the index of a large table is built.
    atomic = False
    dependencies = [("emails", "0029_reply_domain")]

    operations = [
        AddIndexConcurrently(
            model_name="email",
            index=models.Index(
                fields=["workspace", "stream", "-created_at", "-id"],
                condition=models.Q(("stream", "main"), _negated=True),
                name="email_by_stream",
            ),
        ),
        AddIndexConcurrently(
            model_name="email",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("tags", []), _negated=True),
                fields=["tags"],
                gin_pending_list_limit=512,
                name="email_by_tag",
            ),
        ),
    ]
