"""SpamAssassin reports no problem with the composition of messages."""

import re
import subprocess
from pathlib import Path

from tests.standards.tools import program

SPAM = Path(__file__).parent / "scripts" / "spam.pl"
COMPOSITION_RULE = re.compile(r"^_*(MIME|MISSING|BASE64|MALFORMED|INVALID|BAD|CTYPE|MALF)_|_MIME")


def hits(directory: Path, files: list[Path]) -> dict[Path, tuple[float, set[str]]]:
    """Return the score of each file and the rules that it hit."""
    program("spamassassin", package="spamassassin")
    done = subprocess.run(["perl", SPAM, directory, *files], capture_output=True, text=True, timeout=120, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return {Path(path): (float(score), set("".join(names).split(","))) for path, score, *names in lines}


def test_no_shape_hits_a_rule_about_mime_or_about_missing_headers(tmp_path, good):
    shapes = {name: path for name, path in good.items() if not name.startswith("corpus")}
    found = hits(tmp_path, list(shapes.values()))
    problems = {
        name: {rule for rule in found[path][1] if COMPOSITION_RULE.search(rule)} for name, path in shapes.items()
    }
    assert {name: rules for name, rules in problems.items() if rules} == {}
    assert found[good["both"]][0] < 1
