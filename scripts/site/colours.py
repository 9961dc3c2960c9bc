"""Colours for `.mfma`, whose words grammars/mfma.lark has, and none for AMD's assembly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text
from sphinx.application import Sphinx

_GRAMMAR = Path(__file__).parents[2] / "grammars" / "mfma.lark"
_WORDS = tuple(sorted(set(re.findall(r'"([a-z_]{2,})"', _GRAMMAR.read_text(encoding="utf-8")))))


class MfmaLexer(RegexLexer):
    """Whatever is no word of the language is a name; a text with mistakes has colours, too."""

    name = "mfma"
    aliases: ClassVar[list[str]] = ["mfma", "wrong"]
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"///.*", Comment.Special),
            (r"//.*", Comment.Single),
            (words(_WORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r'"[^"\n]*"?', String),
            (r"\b[0-9]+\b", Number),
            (r"\b[0-9]*[A-Za-z_][A-Za-z0-9_]*", Name),
            (r"[-+*/%=<>]", Operator),
            (r"[\[\](){},.:;]", Punctuation),
            (r"\s+", Text),
            (r".", Text),
        ]
    }


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_lexer("mfma", MfmaLexer)
    app.add_lexer("wrong", MfmaLexer)
    app.add_lexer("asm", TextLexer)  # Pygments knows that of other machines
    return {"parallel_read_safe": True}
