"""What mkdocs calls for the site (``make site``): adds pages that are not in docs/, and mends links.

mkdocs loads this file by its path.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the program mkdocs does not look here
reference = importlib.import_module("docs.builders.reference")
site_pages = importlib.import_module("docs.builders.site_pages")


def on_config(config: Any) -> Any:
    """Let headings have the anchors that they have on GitHub."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = site_pages.slug
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand outside of docs/, and those that tables make."""
    from mkdocs.structure.files import File

    for file, page in site_pages.OUTSIDE.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for page, text in reference.pages().items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Show a page as the site does."""
    return str(site_pages.shown(markdown, page.file.src_uri))
