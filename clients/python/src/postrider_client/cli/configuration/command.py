"""`postrider apply`."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import click

from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.configuration.applying import Applier, secrets_file
from postrider_client.cli.configuration.checking import check_values
from postrider_client.cli.configuration.faults import Fault, InvalidFile
from postrider_client.cli.configuration.initial import describe_workspace
from postrider_client.cli.configuration.leases import RunLease, hold_lease
from postrider_client.cli.configuration.planning import Plan, WorkspacePlan, combine_plans, plan_workspace
from postrider_client.cli.configuration.report import DONE, FAILED, PENDING, Report, confirm_plan, show_faults
from postrider_client.cli.configuration.session import Session, open_session
from postrider_client.cli.configuration.source import ConfigurationFile, read_configuration
from postrider_client.cli.configuration.targets import find_targets
from postrider_client.cli.error_messages import CHANGES
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import note
from postrider_client.errors import PostriderError

DECLINED = 1
# Scopes of temporary API keys.
READING, CHANGING = "read_only", "full_access"


@dataclass(frozen=True)
class ApplyOptions:
    file: str
    is_dry_run: bool
    is_confirmed: bool
    prune: bool
    secrets_path: Optional[str]
    is_new: bool


@click.command(cls=PostriderCommand)
@click.option("-f", "--file", metavar="PATH", default="postrider.yaml", show_default=True, help="The file; - is stdin.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only show the plan; exit code 8 if there are changes.")
@click.option("-y", "--yes", "is_confirmed", is_flag=True, help="Make the changes without asking.")
@click.option("--prune", is_flag=True, help="Delete objects that are not in the sections of the file.")
@click.option(
    "--secrets-file", "secrets_path", metavar="PATH", help="Append new secrets to a file with mode 0600, as JSON lines."
)
@click.option("--init", "is_new", is_flag=True, help="Write the file from the present state of the workspace.")
@pass_invocation
def apply(invocation: Invocation, /, **options: Any) -> int:
    """Change the service to match a configuration file.

    Shows a plan and asks before the first change. A second run changes nothing.
    """
    try:
        chosen = ApplyOptions(**options)
        return _write_initial(invocation, chosen) if chosen.is_new else _apply(invocation, chosen)
    except InvalidFile as error:
        show_faults(invocation.output, error)
        raise


def _apply(invocation: Invocation, options: ApplyOptions) -> int:
    source, faults = read_configuration(options.file)
    connection, client = invocation.connection, invocation.client()
    scope = READING if options.is_dry_run else CHANGING
    with open_session(client, api_key=connection.api_key, url=connection.url, scope=scope) as session:
        source = _checked(source, session, faults)
        plan = make_plan(source, session, prune=options.prune)
        report = Report(invocation.output, source.references.hide, plan)
        report.show_plan()
        if options.is_dry_run or not plan.steps:
            report.show_result()
            return CHANGES if plan.steps else 0
        if not options.is_confirmed and not _is_agreed(report):
            return DECLINED
        with hold_lease(session.manager, workspaces=_leased(plan, session)) as lease:
            report = _renewed(source, session, report, options)
            _make_changes(session, report, lease, secrets_path=options.secrets_path)
        return 0


def _write_initial(invocation: Invocation, options: ApplyOptions) -> int:
    connection = invocation.connection
    with open_session(invocation.client(), api_key=connection.api_key, url=connection.url, scope=READING) as session:
        initial = describe_workspace(session)
    initial.write(Path(options.file))
    for text in initial.notes:
        note(text)
    files = [options.file, *initial.contents]
    invocation.output.show_result(f"{', '.join(files)} written.", raw={"files": files, "notes": initial.notes})
    return 0


def _checked(source: ConfigurationFile, session: Session, faults: list[Fault]) -> ConfigurationFile:
    """Return the file if it is valid. Raises InvalidFile with the errors found here and by the service."""
    try:
        checked, found = check_values(source, session.manager)
    except PostriderError:
        if faults:
            raise InvalidFile(source.name, faults) from None
        raise
    # The value of an unset variable is invalid for the service, too.
    lines = {fault.line for fault in faults}
    faults = [*faults, *(fault for fault in found if fault.line not in lines)]
    if faults:
        raise InvalidFile(source.name, faults)
    return checked


def make_plan(source: ConfigurationFile, session: Session, *, prune: bool) -> Plan:
    """Compare the file with the service. Raises InvalidFile for changes that the key cannot make."""
    targets, faults = find_targets(source, session)
    if faults:
        raise InvalidFile(source.name, faults)
    plans = list[WorkspacePlan]()
    for workspace, target in zip(source.workspaces, targets):
        place = session.place(target.workspace_id) if target.workspace_id else None
        plans.append(plan_workspace(workspace, target, place))
    return combine_plans(plans, prune=prune)


def _leased(plan: Plan, session: Session) -> list[Optional[str]]:
    """Return the workspaces that a plan changes, and None for the list of workspaces of a management key."""
    changed = dict.fromkeys(step.target.workspace_id for step in plan.steps if step.target.workspace_id)
    return [*changed, None] if session.is_management else [*changed]


def _renewed(source: ConfigurationFile, session: Session, report: Report, options: ApplyOptions) -> Report:
    """Return the report of a plan that was made with the lease: another run may have made the same changes.

    Raises click.ClickException if it is not the plan that the user agreed to.
    """
    plan = make_plan(source, session, prune=options.prune)
    if [step.raw for step in plan.steps] == [step.raw for step in report.plan.steps]:
        return report
    if not options.is_confirmed:
        raise click.ClickException("The service was changed since the plan was made. Nothing was changed; try again.")
    note("The service was changed since the plan was made. This is the new plan.")
    renewed = Report(report.output, report.hide, plan)
    renewed.show_plan()
    return renewed


def _is_agreed(report: Report) -> bool:
    """Ask on a terminal. Raises click.ClickException without a terminal."""
    if not (report.output.is_table and sys.stdin.isatty()):
        report.show_result()
        raise click.ClickException("Nothing was changed. Without a terminal, pass --yes, or --dry-run for the plan.")
    return confirm_plan()


def _make_changes(session: Session, report: Report, lease: RunLease, *, secrets_path: Optional[str]) -> None:
    """Make the changes in order. The first error ends the run, after a report of the changes that were made."""
    with ExitStack() as resources:
        keep = resources.enter_context(secrets_file(secrets_path)) if secrets_path else report.show_secret
        applier = Applier(session, keep)
        report.statuses = [PENDING] * len(report.plan.steps)
        resources.callback(report.show_result)
        for number, step in enumerate(report.plan.steps):
            report.statuses[number] = FAILED
            try:
                lease.renew()
                applier.perform(step)
            except BaseException:  # also when the user interrupts the run
                report.show_failure()
                raise
            report.statuses[number] = DONE
            report.show_progress(step)
