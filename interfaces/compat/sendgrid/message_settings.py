"""Settings of an email in SendGrid's API. Enabled settings that change the email and have no effect here are refused.

https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send. See docs/decisions/0291.
"""

from typing import Any

from interfaces.compat.drafts import as_object
from interfaces.compat.errors import invalid_field

SUPPORTED = {
    "mail_settings": {"sandbox_mode", "bypass_unsubscribe_management"},
    "tracking_settings": {"click_tracking", "open_tracking", "subscription_tracking"},
}
BYPASS = "Suppressed addresses are never sent to. Delete the suppression of an address that may get email again."
ADVICE = {
    "bypass_list_management": BYPASS,
    "bypass_bounce_management": BYPASS,
    "bypass_spam_management": BYPASS,
    "footer": "Put the footer into the content or the template.",
    "bcc": "Name the address in bcc of each personalization.",
    "ganalytics": "Add the utm parameters to the links.",
}


def refuse_settings(body: dict[str, Any]) -> None:
    """Raise InvalidFields for an enabled setting without an equivalent, and for sections."""
    for group, supported in SUPPORTED.items():
        for name, value in as_object(body.get(group), group).items():
            field = f"{group}.{name}"
            if name not in supported and as_object(value, field).get("enable"):
                advice = ADVICE.get(name, "Leave it out.")
                raise invalid_field(field, f"This setting is not supported here. {advice}")
    if as_object(body.get("sections"), "sections"):
        raise invalid_field("sections", "Sections are not supported here. Put their texts into the substitutions.")
