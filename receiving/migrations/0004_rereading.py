"""When a message was reread, and the event of an email before that."""

from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [
        ("receiving", "0003_forwards"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="reread_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="receivedemail",
            name="unread_event_id",
            field=core.lib.model_fields.IdField("evt_", editable=False, null=True),
        ),
    ]
