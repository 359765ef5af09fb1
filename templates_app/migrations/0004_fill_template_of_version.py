"""Set the template of each current version. Replaced versions of before have no template, so none restores them."""

from django.db import migrations

FILL = """
UPDATE templates_app_templateversion v SET template_id = t.id FROM templates_app_template t WHERE t.version_id = v.id;
"""


class Migration(migrations.Migration):
    dependencies = [("templates_app", "0003_template_of_version")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
