"""Checks of the canary: that it can be verified, that it takes the way of other email, and that it comes back."""

from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from config.heartbeats import live_workers
from console.system_mail.canary.status import find_warnings, is_paused
from console.system_mail.sending import find_signing_key
from core.lib.email_addresses import parse_address
from domains.received_domains import read_received_domains

OFF = "CANARY_MINUTES is 0."


def check_canary_setup(_: DoctorOptions) -> Diagnosis:
    if not settings.CANARY_MINUTES:
        return skip(OFF)
    sender = parse_address(settings.SYSTEM_FROM).domain
    if find_signing_key() is None:
        return failed(
            f"Canaries are not signed, because no workspace has verified {sender}, the domain of SYSTEM_FROM.",
            remedy=f"Add {sender} as a sending domain of a workspace, publish its DNS records, and verify it.",
        )
    domain = settings.CANARY_ADDRESS.rpartition("@")[2]
    if _has_direct_transport() and domain in read_received_domains():
        return warning(
            f"Canaries to {settings.CANARY_ADDRESS} do not leave this installation: a direct transport delivers to the "
            "domains that it receives without DNS and port 25.",
            remedy=f"Set CANARY_ADDRESS to a mailbox elsewhere that forwards to canary@{settings.RETURN_PATH_DOMAIN}.",
        )
    return ok(f"Canaries to {settings.CANARY_ADDRESS} are signed.")


def check_canary_runs(_: DoctorOptions) -> Diagnosis:
    if not settings.CANARY_MINUTES:
        return skip(OFF)
    if warnings := find_warnings(has_workers=bool(live_workers())):
        remedy = "Look at the canaries in the staff admin; the reply of the host is that of their system email."
        if is_paused():
            remedy = "Set CANARY_MINUTES=0 if this is a staging system."
        return warning(" ".join(warnings), remedy=remedy)
    return ok("The last canary of each transport came back in time.")


def _has_direct_transport() -> bool:
    if not settings.TRANSPORTS.is_named:
        return bool(settings.DELIVERY_TRANSPORT == "direct")
    return any(spec.kind == "direct" for spec in settings.TRANSPORTS.transports.values())
