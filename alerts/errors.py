"""API errors of alerts."""

from typing import ClassVar

from core.api.errors import Member, Problem


class AlertExists(Problem):
    """The workspace has an alert with this metric, stream and threshold.

    Change the existing alert, or use another threshold.
    """

    status, code, title = 409, "alert_exists", "Alert exists"
    example = "There is the alert 'Bounce rate at 5%' already. Use another threshold."
    added_members: ClassVar = {"alertId": Member("The id of the existing alert.", "alr_0Uf7kWQ2mX1cVbNq8RtYzA")}
