"""Build the font, the icons and the template editor of the dashboard from console/dashboard/assets/.

    python bin/assets.py [DIRECTORY]

The results belong to console/dashboard/static/dashboard/, the default directory, and are committed. A test builds them
again and compares. npm downloads the sources, with the versions and checksums of package-lock.json.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import unfold
from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCES = REPOSITORY / "console" / "dashboard" / "assets"
RESULTS = REPOSITORY / "console" / "dashboard" / "static" / "dashboard"
ICONS = Path(unfold.__file__).parent / "static/unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2"
INTER = "node_modules/inter-ui/variable/InterVariable.woff2"
# Latin with its extensions, punctuation, currencies, arrows and comparisons. Browsers show other scripts in a font of
# the system.
CHARACTERS = (
    (0x20, 0x7E), (0xA0, 0x17F), (0x218, 0x21B), (0x2010, 0x2027), (0x2030, 0x203A), (0x20AC, 0x20AC),
    (0x2116, 0x2116), (0x2122, 0x2122), (0x2190, 0x2193), (0x2212, 0x2212), (0x2260, 0x2265),
)  # fmt: skip
FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum", "calt"]
# The weights in use, and the shapes for small text.
AXES = {"wght": (400, 700), "opsz": 14}


def main(arguments: list[str]) -> None:
    results = Path(arguments[0]) if arguments else RESULTS
    build_icons(results / "icons.woff2")
    with tempfile.TemporaryDirectory() as directory:
        packages = install_packages(Path(directory))
        build_font(packages / INTER, results / "inter.woff2")
        build_editor(packages, results / "template_editor.js")


def build_icons(result: Path) -> None:
    """Write the icons of icons.txt. A page shows an icon by its name, which is a ligature."""
    font = TTFont(ICONS, recalcTimestamp=False)
    ligatures = dict(icon_ligatures(font))
    names = (SOURCES / "icons.txt").read_text("utf-8").split()
    unknown = [name for name in names if name not in ligatures]
    if unknown:
        raise SystemExit(f"Material Symbols has no icon {', '.join(unknown)}.")
    # Without closure: the characters alone would bring all icons.
    options = font_options(layout_features=["rlig"], layout_closure=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(glyphs=[ligatures[name] for name in names], unicodes=map(ord, {*"".join(names)}))
    subsetter.subset(font)
    subset.save_font(font, result, options)


def icon_ligatures(font: TTFont) -> Iterator[tuple[str, str]]:
    """Yield the name and the glyph of each icon in the font."""
    characters = {glyph: chr(code) for code, glyph in font.getBestCmap().items()}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            for first, ligatures in getattr(table, "ExtSubTable", table).ligatures.items():
                for ligature in ligatures:
                    yield "".join(characters[glyph] for glyph in (first, *ligature.Component)), ligature.LigGlyph


def install_packages(directory: Path) -> Path:
    """Install the packages of package-lock.json; return the directory."""
    for source in (SOURCES / "package.json", SOURCES / "package-lock.json", *SOURCES.glob("*.js")):
        shutil.copy(source, directory)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=directory, check=True)
    return directory


def build_font(source: Path, result: Path) -> None:
    font = TTFont(source, recalcTimestamp=False)
    options = font_options(layout_features=FEATURES)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in CHARACTERS for code in range(first, last + 1)])
    subsetter.subset(font)
    subset.save_font(instancer.instantiateVariableFont(font, AXES), result, options)


def build_editor(packages: Path, result: Path) -> None:
    """Write template_editor.js with its packages as one file."""
    command = ["npx", "--no-install", "esbuild", "template_editor.js", "--bundle", "--minify", "--format=iife"]
    options = ["--target=es2020", "--legal-comments=none", "--log-level=warning", f"--outfile={result.resolve()}"]
    subprocess.run([*command, *options], cwd=packages, check=True)


def font_options(**values: object) -> subset.Options:
    return subset.Options(flavor="woff2", hinting=False, drop_tables=[*subset.Options().drop_tables, "FFTM"], **values)


if __name__ == "__main__":
    main(sys.argv[1:])
