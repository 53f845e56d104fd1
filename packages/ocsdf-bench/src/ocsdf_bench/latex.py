"""Text that LaTeX prints as it stands."""

from __future__ import annotations

import unicodedata

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # after \\ it would be read as an optional argument
    "]": "{]}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "χ": r"$\chi$",
    "²": r"$^2$",
}


def escape(text: str) -> str:
    """``text`` with every character that LaTeX would act on, or that pdfLaTeX's fonts lack, made printable.

    Examples
    --------
    >>> print(escape("50 % of {x_1} ± 0.1"))
    50 \\% of \\{x\\_1\\} $\\pm$ 0.1
    """
    return "".join(_ESCAPES.get(c) or _printable(c) for c in " ".join(text.split()))


def _printable(character: str) -> str:
    if character.isascii():
        return character if character.isprintable() else "?"
    if "À" <= character <= "ÿ" or character in "šžŠŽčćČĆ":  # T1 fonts have these
        return character
    name = unicodedata.name(character, "")
    return f"(U+{ord(character):04X})" if name else "?"
