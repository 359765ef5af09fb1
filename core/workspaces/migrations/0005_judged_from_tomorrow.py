from django.db import migrations

# Mail that left before this version was not counted, but complaints about it would be.
TOMORROW = "UPDATE workspaces_workspace SET judged_from = now() + interval '1 day'"


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0004_reputation")]

    operations = [migrations.RunSQL(TOMORROW, migrations.RunSQL.noop)]
