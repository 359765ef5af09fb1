"""The fonts and icons of the dashboard: complete, and built from their sources."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import unfold
from fontTools.ttLib import TTFont

from bin import assets
from tests.stack.stack import REPOSITORY

ICON = re.compile(r'class="[^"]*material-symbols-outlined[^"]*"[^>]*>\s*(\w+)\s*<')
STYLE_ICON = re.compile(r'([^{}]*)\{[^{}]*content:"([a-z_]{2,})"')
# Unfold's editor of JSON and its calendar, which no page has.
UNUSED_WIDGETS = (".jsoneditor", ".calendarnav")
TEMPLATES = (REPOSITORY / "console" / "dashboard" / "templates", Path(unfold.__file__).parent / "templates")
# The digest of the version that console/dashboard/templates/unfold/layouts/skeleton.html is a copy of.
SKELETON = "66af9f0bb45f98ba"


def present_icons() -> set[str]:
    return set(dict(assets.icon_ligatures(TTFont(assets.RESULTS / "icons.woff2"))))


def test_the_font_has_the_icons_of_all_templates():
    used = {name for folder in TEMPLATES for path in folder.rglob("*.html") for name in ICON.findall(path.read_text())}

    assert len(used) > 40
    assert used - present_icons() == set(), "Add them to console/dashboard/assets/icons.txt, and run bin/assets.py."


def test_the_font_has_the_icons_of_unfolds_style_sheet():
    sheet = (Path(unfold.__file__).parent / "static" / "unfold" / "css" / "styles.css").read_text()
    used = {name for selector, name in STYLE_ICON.findall(sheet) if not selector.startswith(UNUSED_WIDGETS)}

    assert {"check_small", "calendar_today"} <= used
    assert used - present_icons() == set(), "Add them to console/dashboard/assets/icons.txt, and run bin/assets.py."


def test_the_skeleton_is_that_of_this_unfold():
    original = Path(unfold.__file__).parent / "templates" / "unfold" / "layouts" / "skeleton.html"
    digest = hashlib.sha256(original.read_bytes()).hexdigest()

    assert digest.startswith(SKELETON), (
        "Take unfold's changes over into console/dashboard/templates/unfold/, then change this."
    )


@pytest.mark.full
def test_the_committed_files_are_those_of_their_sources(tmp_path):
    subprocess.run([sys.executable, "bin/assets.py", str(tmp_path)], cwd=REPOSITORY, check=True)
    built = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert len(built) == 3
    changed = [name for name, content in built.items() if content != (assets.RESULTS / name).read_bytes()]
    assert not changed, "Run bin/assets.py."
