"""Text that Markdown prints as it stands."""

from __future__ import annotations

import re

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|#~$&])")


def escape(text: str) -> str:
    """One line of text in which Markdown and HTML find nothing to act on.

    >>> print(escape("a|b <i>*c*</i>"))
    a\\|b \\<i\\>\\*c\\*\\</i\\>
    """
    return _ACTIVE.sub(r"\\\1", " ".join(text.split()))
