"""Checks of named transports that need the database: their states, the routes of streams, alignment of domains."""

from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, warning
from config.start.routes import alignment_warnings, route_errors
from core.delivery.transports.router import TransportState
from emails.sending.transport_status import read_statuses, recent_listings


def check_states(_: DoctorOptions) -> Diagnosis:
    """Diagnose the states of named transports: a paused one costs nothing while another one works."""
    if errors := list(route_errors()):
        return failed(" ".join(errors), remedy="Correct TRANSPORTS_FILE or the streams, and restart the workers.")
    if listings := [f"{listed_by} (transport {name})" for name, listed_by in recent_listings()]:
        text = f"Receivers refused the address within a day because of block lists: {', '.join(listings)}."
        return warning(text, remedy="Find the cause, and request the removal on the page that the replies name.")
    if not settings.TRANSPORTS.is_named:
        return ok("There is one transport.")
    statuses = read_statuses()
    paused = [status for status in statuses if status.state in (TransportState.PAUSED, TransportState.PROBING)]
    if paused:
        texts = [f"{status.name} is {status.state}: {status.last_error}" for status in paused]
        return warning(" ".join(texts), remedy="Correct its settings or its host. It is used again by itself.")
    drained = [status.name for status in statuses if status.state == TransportState.DRAINING]
    if drained:
        names = ", ".join(drained)
        return warning(f"Drained: {names}.", remedy="Run manage.py transport resume NAME to use it again.")
    return ok(f"In use: {', '.join(status.name for status in statuses)}.")


def check_alignment(_: DoctorOptions) -> Diagnosis:
    """Diagnose whether the SPF records of sending domains let every transport send."""
    if messages := list(alignment_warnings()):
        return warning(" ".join(messages), remedy="Ask their owners to publish the records, or take the transport out.")
    return ok("The SPF records of all sending domains allow all transports.")
