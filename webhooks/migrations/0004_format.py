from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0003_pending_delivery")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="format",
            field=models.CharField(
                choices=[
                    ("standard", "Standard"),
                    ("resend", "Resend"),
                    ("postmark", "Postmark"),
                    ("sendgrid", "SendGrid"),
                ],
                db_default="standard",
                default="standard",
                max_length=16,
            ),
        ),
    ]
