"""The table of checks of `manage.py doctor`, in the order of the report."""

from collections.abc import Callable
from dataclasses import dataclass

from config.doctor import canary, identity_provider, installation, mail, receiving, standby, submission, transports, web
from config.doctor.diagnosis import Diagnosis, DoctorOptions, Verdict, failed, skip


@dataclass(frozen=True)
class DoctorCheck:
    """needs: the check without whose success this one cannot run."""

    name: str
    diagnose: Callable[[DoctorOptions], Diagnosis]
    needs: str = ""


CHECKS = (
    DoctorCheck("settings", installation.check_settings),
    DoctorCheck("database", installation.check_database),
    DoctorCheck("database_tls", installation.check_database_tls, needs="settings"),
    DoctorCheck("database_version", installation.check_database_version, needs="database"),
    DoctorCheck("extension", installation.check_extension, needs="database"),
    DoctorCheck("synchronous_commit", installation.check_synchronous_commit, needs="database"),
    DoctorCheck("standby", standby.check_standby, needs="database"),
    DoctorCheck("standby_lag", standby.check_lag, needs="standby"),
    DoctorCheck("migrations", installation.check_migrations, needs="database"),
    DoctorCheck("plans", installation.check_plans, needs="migrations"),
    DoctorCheck("clock", installation.check_clock, needs="database"),
    DoctorCheck("redis", installation.check_redis),
    DoctorCheck("workers", installation.check_workers, needs="redis"),
    DoctorCheck("transport", installation.check_transport, needs="workers"),
    DoctorCheck("recipients", installation.check_recipients),
    DoctorCheck("transports", transports.check_states, needs="migrations"),
    DoctorCheck("alignment", transports.check_alignment, needs="migrations"),
    DoctorCheck("block_lists", transports.check_block_lists, needs="migrations"),
    DoctorCheck("source_names", transports.check_source_names, needs="migrations"),
    DoctorCheck("receivers", transports.check_receivers, needs="migrations"),
    DoctorCheck("tls_policies", transports.check_tls_policies, needs="settings"),
    DoctorCheck("tls_reports", transports.check_tls_reports, needs="migrations"),
    DoctorCheck("new_addresses", transports.check_new_addresses, needs="migrations"),
    DoctorCheck("queue", installation.check_queue, needs="migrations"),
    DoctorCheck("public_url", web.check_public_url),
    DoctorCheck("proxy", web.check_proxy, needs="public_url"),
    DoctorCheck("tracking_hosts", web.check_tracking_hosts, needs="migrations"),
    DoctorCheck("identity_provider", identity_provider.check_discovery, needs="settings"),
    DoctorCheck("identity_clock", identity_provider.check_clock, needs="identity_provider"),
    DoctorCheck("identity_redirect", identity_provider.check_redirects, needs="identity_provider"),
    DoctorCheck("identity_roles", identity_provider.check_roles, needs="settings"),
    DoctorCheck("port_25", mail.check_port_25),
    DoctorCheck("ehlo_name", mail.check_ehlo_forward),
    DoctorCheck("reverse_dns", mail.check_ehlo_reverse, needs="ehlo_name"),
    DoctorCheck("relay", mail.check_relay, needs="settings"),
    DoctorCheck("spf", mail.check_spf, needs="settings"),
    DoctorCheck("return_path", mail.check_return_path),
    DoctorCheck("inbound", mail.check_inbound, needs="return_path"),
    DoctorCheck("report_domain", mail.check_report_domain, needs="return_path"),
    DoctorCheck("receiving", receiving.check_mail_hosts, needs="migrations"),
    DoctorCheck("receiving_domain", receiving.check_shared_domain),
    DoctorCheck("receiving_domains", receiving.check_domains, needs="migrations"),
    DoctorCheck("canary", canary.check_canary_setup, needs="migrations"),
    DoctorCheck("canary_runs", canary.check_canary_runs, needs="migrations"),
    DoctorCheck("static_files", installation.check_static_files),
    DoctorCheck("submission", submission.check_submission),
    DoctorCheck("submission_certificate", submission.check_submission_certificate),
    DoctorCheck("submission_plaintext", submission.check_submission_plaintext),
    DoctorCheck("disk", installation.check_disk),
    DoctorCheck("backups", installation.check_backups),
)


def run_checks(options: DoctorOptions) -> dict[str, Diagnosis]:
    """Run all checks; return the diagnoses by the name of the check."""
    diagnoses: dict[str, Diagnosis] = {}
    for check in CHECKS:
        needed = diagnoses.get(check.needs)
        if needed and needed.verdict in {Verdict.FAILED, Verdict.SKIPPED}:
            diagnoses[check.name] = skip(f"Not checked, because {check.needs} is {needed.verdict}.")
        else:
            diagnoses[check.name] = _diagnose(check, options)
    return diagnoses


def _diagnose(check: DoctorCheck, options: DoctorOptions) -> Diagnosis:
    try:
        return check.diagnose(options)
    except Exception as error:  # noqa: BLE001 - one broken check must not hide the others
        return failed(
            f"The check failed: {type(error).__name__}: {error}",
            remedy="Correct the other faults first, and run it again.",
        )
