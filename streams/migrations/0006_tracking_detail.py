"""What is stored about the opens and clicks of a stream's emails (docs/decisions/0376)."""

from django.db import migrations, models

import streams.models


class Migration(migrations.Migration):
    dependencies = [("streams", "0005_changed_content_retention")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="tracking_detail",
            field=models.CharField(
                choices=streams.models.tracking_details,
                db_default="full",
                default="full",
                help_text="What is stored about an open or a click. `full`: an event with its time, the URL, and "
                "whether it looks automated. `coarse`: the same without anything that depends on the program of the "
                "reader. `counts`: only that the recipient opened or clicked, without time, order, event and webhook.",
                max_length=16,
            ),
        ),
    ]
