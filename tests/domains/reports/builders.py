"""Reports as reporters send them: documents, archives, and messages."""

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

DAY = timedelta(days=1)


def yesterday() -> tuple[int, int]:
    """Return the range of yesterday, UTC."""
    end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((end - DAY).timestamp()), int(end.timestamp()) - 1


def dmarc_row(ip: str = "192.0.2.1", *, count: int = 3, domain: str = "alice.example", dkim: str = "pass") -> str:
    return f"""<record><row><source_ip>{ip}</source_ip><count>{count}</count><policy_evaluated>
<disposition>none</disposition><dkim>{dkim}</dkim><spf>fail</spf></policy_evaluated></row>
<identifiers><header_from>{domain}</header_from></identifiers><auth_results>
<dkim><domain>{domain}</domain><selector>pr1</selector><result>{dkim}</result></dkim></auth_results></record>"""


def dmarc_report(
    *rows: str, domain: str = "alice.example", report_id: str = "r1", reporter: str = "google.com",
    dates: tuple[int, int] | None = None, root: str = "feedback", head: str = "",
) -> bytes:  # fmt: skip
    begin, end = dates or yesterday()
    return f"""<?xml version="1.0" encoding="UTF-8"?>{head}<{root}><report_metadata><org_name>{reporter}</org_name>
<email>noreply@{reporter}</email><report_id>{report_id}</report_id>
<date_range><begin>{begin}</begin><end>{end}</end></date_range></report_metadata>
<policy_published><domain>{domain}</domain><p>none</p></policy_published>{"".join(rows or [dmarc_row()])}
</{root.partition(" ")[0]}>""".encode()


def tls_report(domain: str = "alice.example", **changes: Any) -> bytes:
    begin, end = (datetime.fromtimestamp(time, UTC).isoformat() for time in yesterday())
    return json.dumps({
        "organization-name": "Google Inc.", "contact-info": "smtp-tls-reporting@google.com", "report-id": "t1",
        "date-range": {"start-datetime": begin, "end-datetime": end},
        "policies": [{
            "policy": {"policy-type": "sts", "policy-domain": domain, "mx-host": ["mx.alice.example"]},
            "summary": {"total-successful-session-count": 40, "total-failure-session-count": 2},
            "failure-details": [{
                "result-type": "certificate-expired", "failed-session-count": 2, "sending-mta-ip": "192.0.2.9",
                "receiving-mx-hostname": "mx.alice.example",
            }],
        }],
        **changes,
    }).encode()  # fmt: skip


def zipped(*contents: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for number, content in enumerate(contents):
            file.writestr(f"{number}.xml", content)
    return archive.getvalue()


def message(content: bytes, *, name: str = "report.bin") -> bytes:
    """Return a message with a text and an attachment, whose type and name say nothing."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "noreply@google.com", "d@bounce.example", "Report domain"
    mail.set_content("This is a report.")
    mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return mail.as_bytes()


def nested(content: bytes, *, levels: int) -> bytes:
    for _ in range(levels):
        content = gzip.compress(content)
    return content
