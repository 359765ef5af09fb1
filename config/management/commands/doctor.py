"""manage.py doctor: check the installation; print a verdict for each check, and the remedy of each fault."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from config.doctor.checks import run_checks
from config.doctor.diagnosis import Diagnosis, DoctorOptions, Verdict

DEFAULTS = DoctorOptions()
NAME_WIDTH = 20


class Command(BaseCommand):
    help = (
        "Check the installation and explain each fault: settings, database, Redis, workers, web, DNS and mail routes. "
        "Run it on the machine of a web or worker process. The exit status is 1 if a check failed."
    )
    # An invalid setting is one of the faults to report.
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--backups", type=Path, help="a backup, or the directory of the backups: check their age")
        parser.add_argument("--backup-max-hours", type=float, default=DEFAULTS.backup_max_hours)
        parser.add_argument("--min-free-gib", type=float, default=DEFAULTS.min_free_gib)
        parser.add_argument(
            "--probe-domains",
            nargs="+",
            default=DEFAULTS.probe_domains,
            help="domains to whose mail hosts a connection on port 25 is tried",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        diagnoses = run_checks(
            DoctorOptions(
                backups=options["backups"],
                backup_max_hours=options["backup_max_hours"],
                min_free_gib=options["min_free_gib"],
                probe_domains=tuple(options["probe_domains"]),
            )
        )
        write = self.write_json if options["json"] else self.write_report
        write(diagnoses)
        if failures(diagnoses):
            sys.exit(1)

    def write_json(self, diagnoses: dict[str, Diagnosis]) -> None:
        checks = [{"check": name, **asdict(diagnosis)} for name, diagnosis in diagnoses.items()]
        status = Verdict.FAILED if failures(diagnoses) else Verdict.OK
        self.stdout.write(json.dumps({"status": status, "checks": checks}, indent=2))

    def write_report(self, diagnoses: dict[str, Diagnosis]) -> None:
        for name, diagnosis in diagnoses.items():
            verdict = self.colour(diagnosis.verdict)(f"{diagnosis.verdict:8}")
            self.stdout.write(f"{verdict} {name:{NAME_WIDTH}} {diagnosis.message}")
            if diagnosis.remedy:
                self.stdout.write(f"{'':8} {'':{NAME_WIDTH}} → {diagnosis.remedy}")
        count = len(failures(diagnoses))
        self.stdout.write(f"{count} check{'' if count == 1 else 's'} failed." if count else "No check failed.")

    def colour(self, verdict: Verdict) -> Callable[[str], str]:
        styles: dict[Verdict, Callable[[str], str]] = {
            Verdict.OK: self.style.SUCCESS,
            Verdict.WARNING: self.style.WARNING,
            Verdict.FAILED: self.style.ERROR,
        }
        return styles.get(verdict, str)


def failures(diagnoses: dict[str, Diagnosis]) -> list[str]:
    return [name for name, diagnosis in diagnoses.items() if diagnosis.verdict is Verdict.FAILED]
