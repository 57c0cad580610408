"""User codes of devices (RFC 8628 section 6.1)."""

import unicodedata

from domain.randomness import random_letters

#: No vowels, so that no words come about; nothing that can be taken for something else.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
#: 20**8 codes are 34.5 bits: enough with a short life and few guesses.
LENGTH = 8
#: In characters: enough for any number of spaces and dashes that people type.
LONGEST_TYPED = 64


def new_user_code() -> str:
    """Return eight random letters."""
    return random_letters(ALPHABET, LENGTH)


def shown(code: str) -> str:
    """Return a code for display: two groups of four letters."""
    return f"{code[:4]}-{code[4:]}"


def read_user_code(typed: str) -> str | None:
    """Return the code in what a user typed, or None if it cannot be one.

    Case, spaces and dashes do not count, and neither does the width of the letters.
    """
    if len(typed) > LONGEST_TYPED:
        return None
    letters = unicodedata.normalize("NFKC", typed).upper()
    code = "".join(each for each in letters if not _is_between(each))
    return code if len(code) == LENGTH and set(code) <= set(ALPHABET) else None


def _is_between(character: str) -> bool:
    """Return whether a character is a separator: a space, a dash or invisible."""
    return character.isspace() or unicodedata.category(character) in {"Pd", "Zs", "Cf"}
