"""What `bin/run` shows when the service is up."""

from embedded.demo import Demo
from embedded.locations import DataDirectory

WELCOME = """
Postrider runs at {base}

  Dashboard  {base}/dashboard/   {email}   {password}
  Inbox      {inbox}   where the emails sent from here arrive
  Staff      {base}/admin/   {staff}
  API key    {key}

Send an email:

{curl}

The logins are also in {demo_json}, the logs in {logs}.
A second start keeps all data. Ctrl-C stops everything.
"""


def welcome(demo: Demo, data: DataDirectory) -> str:
    """Return the logins, the places to look at, and a command to send an email with."""
    logins = demo.logins
    staff_name = logins.get("staffEmail") or logins.get("staffUsername")
    staff = f"{staff_name}   {logins.get('staffPassword')}" if staff_name else "login not kept"
    return WELCOME.format(
        base=demo.base_url,
        email=logins["dashboardEmail"],
        password=logins["dashboardPassword"],
        inbox=demo.inbox_url,
        staff=staff,
        key=logins["apiKey"],
        curl=demo.curl(),
        demo_json=data.demo,
        logs=data.logs,
    )
