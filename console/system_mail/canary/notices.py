"""Emails to the staff about a transport whose canary is late, and when one comes back in time again."""

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import CanaryRun, CanaryStage, SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from console.system_mail.workspace_emails import staff_to_notify
from emails.sending.transport_status import drained_transports

LATE = _("""A canary of the transport "{transport}" did not come back within {minutes} minutes: email may be
lost or late.

The last stage that worked: {stage}. The stages: {stages}.

{explanation}

{url}
""")
RECOVERED = _("""A canary of the transport "{transport}" came back in time again, and its signature is valid.

{url}
""")


def notify_staff_of_late(run: CanaryRun) -> None:
    """Queue an email to the staff about the first late run of a transport, by another transport if there is one."""
    for member in staff_to_notify():
        with in_language_of(member):
            text = LATE.format(
                transport=run.transport,
                minutes=settings.CANARY_MINUTES,
                stage=run.stage.label,
                stages=", ".join(str(stage.label) for stage in CanaryStage),
                explanation=run.explanation,
                url=_url(),
            ).replace("\n\n\n\n", "\n\n")
            subject = gettext("The canary of the transport %(name)s is late: %(stage)s") % {
                "name": run.transport,
                "stage": run.stage.label,
            }
            queue_system_mail(
                to=member.email,
                kind=SystemMailKind.NOTICE,
                subject=subject,
                text=text,
                transport=_other_transport(run.transport),
            )


def notify_staff_of_recovery(run: CanaryRun) -> None:
    """Queue an email to the staff about the first run of a transport in time after a late one."""
    for member in staff_to_notify():
        with in_language_of(member):
            subject = gettext("The canary of the transport %(name)s arrives again") % {"name": run.transport}
            text = RECOVERED.format(transport=run.transport, url=_url())
            queue_system_mail(to=member.email, kind=SystemMailKind.NOTICE, subject=subject, text=text)


def _other_transport(name: str) -> str | None:
    """Return another transport, preferably one whose last canary came back in time; None without one."""
    drained, late = drained_transports(), {run.transport for run in CanaryRun.objects.newest_ended() if run.is_late}
    others = [other for other in settings.TRANSPORTS.transports if other != name and other not in drained]
    return next((other for other in others if other not in late), next(iter(others), None))


def _url() -> str:
    return f"{settings.PUBLIC_URL}{reverse('admin:system_mail_canaryrun_changelist')}"
