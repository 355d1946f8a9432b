"""Sources, tests and documents use Kubernetes' words, and sentences with a named subject.

A file that needs a word stands in ALLOWED with that word.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: By pattern: what to write instead.
BANNED = {
    "whoever|nobody|somebody|someone|anybody|anyone": "the component or the user by name",
    "anew": "again",
    "(?<!there )is no(?= (?!longer|more))": "is not a",
    "looks? again": "reconcile",
    "(?<=have )a look|takes a look": "read",
    "puts? back": "restore",
    "takes? down|taken down": "record",
    "in the words of": "the message of",
    "at work": "running",
    "of its own": "separate",
    "in (?:its|their) turn|whose turn": "",
    "tells?|told": "reports, shows, states",
    "patience": "timeout",
    "troubles?|complaints?": "last_error, reason, message",
    "oddity|oddities": "anomaly",
    "evidence": "failed Jobs that are kept",
    "outlook": "initial message",
    "judged": "decided",
    "(?-i:gone)": "not found, deleted",  # Gone is HTTP's 410
    "ours": "managed by this plan",
    "inhabitants?": "actor, client",
    "let go on": "resume",
    "noted": "recorded",
    "played": "simulated",
}
#: Words that are right where they stand.
ALLOWED: dict[str, set[str]] = {"tests/test_words.py": {"*"}}
#: Files that hold other people's words.
SKIPPED = (".json", ".txt", "LICENSE", "CHANGELOG.md", ".golden", "deploy/crds/", "hack/crds/")


def texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()  # noqa: S607  # found on the PATH
    return [ROOT / name for name in listed if not any(part in name for part in SKIPPED) and (ROOT / name).is_file()]


#: Five times as fast as the search for the word that was found.
ANY = re.compile(rf"(?<![^\W_])(?:{'|'.join(BANNED)})(?![^\W_])", re.IGNORECASE)


def found(path: Path) -> list[str]:
    name = str(path.relative_to(ROOT))
    allowed = ALLOWED.get(name, set())
    text = path.read_text(encoding="utf-8")
    # An underscore separates words, as a space does.
    if ANY.search(text.replace("_", " ")) is None:
        return []
    pattern = re.compile(
        "|".join(rf"(?P<w{i}>(?<![^\W_])(?:{words})(?![^\W_]))" for i, words in enumerate(BANNED)), re.IGNORECASE
    )
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        for match in pattern.finditer(line.replace("_", " ")):
            if not {match[0].lower(), "*"} & allowed:
                instead = list(BANNED.values())[int((match.lastgroup or "w0")[1:])]
                lines.append(f"{name}:{number}: {match[0]!r}{f' (write: {instead})' if instead else ''}")
    return lines


def test_no_banned_word_is_used() -> None:
    lines = [line for path in texts() for line in found(path)]
    assert not lines, "\n" + "\n".join(lines)


#: A description names the thing that it describes: "The time at which…", "True if…", not "When…", "Whether…".
OPENING = re.compile(r'^ *(?:#:? |""")(?:What|Why|When|Whether|How)\b', re.MULTILINE)


def test_no_description_opens_with_a_question_word() -> None:
    sources = [path for path in texts() if path.suffix == ".py"]
    opened = ((path, path.read_text(encoding="utf-8")) for path in sources)
    assert [
        f"{path.name}: {text[match.start() :][:60]}" for path, text in opened for match in OPENING.finditer(text)
    ] == []
