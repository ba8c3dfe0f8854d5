"""Markdown of the generated pages."""

import re
import textwrap


def paragraph(text: str, bullet: str = "") -> str:
    """The text as a paragraph or list item, wrapped at 100 columns. Lines are broken only outside
    code spans."""
    whole = re.sub(r"`[^`]+`", lambda span: span[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        whole, 100, initial_indent=bullet, subsequent_indent=" " * len(bullet), break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")
