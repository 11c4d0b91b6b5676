"""How many bytes a text takes inside a custom resource.

The API server stores a custom resource as JSON written by Go, where ``<``, ``>``, ``&``, U+2028 and U+2029 take six
bytes each. Above etcd's limit of about 1.5 MiB an object can't be written; just below it, it can be created but never
patched again, so we stay far from it.
"""

import json

ARGUMENTS_LIMIT = 200 * 1024
"""Largest encoded arguments in bytes: each event of the task carries them to every watcher."""

RESULT_LIMIT = 1024 * 1024
"""Largest encoded result in bytes that is kept in an MCPTaskResult."""


def stored_size(text: str) -> int:
    """Bytes that ``text`` takes as a JSON string written by Go; a lone surrogate counts as the U+FFFD that Go reads."""
    plain = len(json.dumps(text, ensure_ascii=False).encode(errors="surrogatepass"))
    wide = text.count("<") + text.count(">") + text.count("&")
    return plain + 5 * wide + 3 * (text.count("\u2028") + text.count("\u2029"))
