"""Links to exports of people."""

from django.conf import settings

from console.privacy.models import SubjectExport


def download_url(export: SubjectExport) -> str:
    """Return the URL of the file, which needs a key."""
    return f"{settings.PUBLIC_URL}/v1/subject-exports/{export.id}/download"
