"""Paths of the web server's files: next to the package in a checkout, inside it in an installed wheel."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
CARRIED = PACKAGE / "_served"  # a wheel's, see hatch_build.py; a checkout has none
COMMIT = CARRIED / "commit"  # of the checkout that a wheel was built from, where git knew it

IS_INSTALLED_FROM_WHEEL = CARRIED.is_dir()
ROOT = CARRIED if IS_INSTALLED_FROM_WHEEL else PACKAGE.parent
LAUNCHER = ROOT / "app.py"
PAGES = ROOT / "pages"
GLOSSARY = ROOT / "docs" / "glossary.md"
