"""`postrider erase` and `postrider export-subject`: requests of people about their data."""

import time
from typing import IO, Any

import click

from postrider_client.answers import Erasure
from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import note

POLL_SECONDS = 2
DECLINED = 1


@click.command(cls=PostriderCommand)
@click.argument("email", metavar="ADDRESS")
@click.option("--delete-suppression", is_flag=True, help="Delete suppressions, too: the address gets email again.")
@click.option("--wait", is_flag=True, help="Wait until everything is erased, also emails that are on their way.")
@click.option("-y", "--yes", "is_confirmed", is_flag=True, help="Erase without asking.")
@pass_invocation
def erase(invocation: Invocation, email: str, *, delete_suppression: bool, wait: bool, is_confirmed: bool) -> int:
    """Erase all data of a person, and show the receipt. This cannot be undone."""
    if not is_confirmed and not click.confirm(f"Erase all data of {email}? This cannot be undone.", err=True):
        return DECLINED
    with invocation.client() as client:
        receipt = client.erasures.create(email, keep_suppression=not delete_suppression)
        while wait and receipt.status != "completed":
            time.sleep(POLL_SECONDS)
            receipt = client.erasures.get(receipt.id)
    invocation.output.show_fields(_fields_of(receipt), raw=receipt.raw)
    return 0


@click.command("export-subject", cls=PostriderCommand)
@click.argument("email", metavar="ADDRESS")
@click.option("--output", "file", type=click.File("wb", lazy=True), default="-", metavar="FILE")
@pass_invocation
def export_subject(invocation: Invocation, email: str, *, file: IO[bytes]) -> None:
    """Write all data of a person as a zip: JSON, and the messages. Standard output by default."""
    with invocation.client() as client:
        export = client.subject_exports.create(email)
        while export.status == "processing":
            time.sleep(POLL_SECONDS)
            export = client.subject_exports.get(export.id)
        data = client.subject_exports.download(export.id)
    file.write(data)
    note(f"{export.id}: {len(data):,} bytes. The service keeps the file until {export.expires_at:%Y-%m-%d}.")
    if export.messages_left_out:
        note(f"{export.messages_left_out:,} messages are left out, because the file would be too large.")


def _fields_of(receipt: Erasure) -> dict[str, Any]:
    deleted = {f"Erased {kind}": count for kind, count in receipt.raw["deleted"].items() if count}
    return {
        "Id": receipt.id,
        "Status": receipt.status,
        "On their way": receipt.waiting,
        **deleted,
        "Completed": receipt.completed_at,
        "In backups until": receipt.backups_until,
    }
