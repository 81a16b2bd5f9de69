"""Writes docs/environment.md from src/base/env.def; --check only compares."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

INTRODUCTION = """# Environment variables

Made from `src/base/env.def` by `tools/make_environment_doc.py`; edit the table there. "Read by": core = the C libraries,
bridge = the PyTorch extension, package = the Python package. `aclInit` refuses a value of a core variable that doesn't fit.
"""

MACROS = (
    "-DENV_INT(name,default,low,high,reader,help)=@row name|default|low to high|reader|help@",
    "-DENV_BYTES(name,default,reader,help)=@row name|default|bytes: K M G T|reader|help@",
    "-DENV_TEXT(name,default,reader,help)=@row name|default|text|reader|help@",
    "-DENV_SECTION(title)=@section title@",
)


def preprocess(source: Path, compiler: str) -> str:
    """The table with every row turned into one @...@ record."""
    command = [compiler, "-E", "-P", "-x", "c", *MACROS, f"-I{source / 'src'}", str(source / "src/base/env.def")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def unquote(text: str) -> str:
    """A C string literal, or the text itself."""
    text = text.strip()
    return text[1:-1].replace('\\"', '"') if text.startswith('"') else text


def document(source: Path, compiler: str = "cc") -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for record in re.findall(r"@\s*(\w+)\s+(.*?)@", preprocess(source, compiler), flags=re.DOTALL):
        kind, body = record
        if kind == "section":
            parts.append(f"\n## {unquote(body)}\n\n| variable | default | values | read by | what it does |\n| --- | --- | --- | --- | --- |\n")
            continue
        name, default, values, reader, text = body.split("|", 4)
        values = "0 or 1" if re.sub(r"\s+", " ", values.strip()) == "0 to 1" else re.sub(r"\s+", " ", values.strip())
        values = values.replace("- ", "-")
        cells = (f"`{name.strip()}`", unquote(default) or "unset", values, unquote(reader), unquote(text))
        parts.append("| " + " | ".join(cells) + " |\n")
    return "".join(parts)


FOLDERS = {"core": "src", "bridge": "bridge", "package": "python"}


def unread(source: Path, compiler: str = "cc") -> list[str]:
    """Variables whose name doesn't occur in the sources of a reader that the table names."""
    texts = {
        reader: "".join(path.read_text() for path in (source / folder).rglob("*") if path.suffix in {".c", ".h", ".cpp", ".py"})
        for reader, folder in FOLDERS.items()
    }
    missing = []
    for kind, body in re.findall(r"@\s*(\w+)\s+(.*?)@", preprocess(source, compiler), flags=re.DOTALL):
        if kind == "row":
            name, readers = body.split("|", 4)[0].strip(), unquote(body.split("|", 4)[3])
            for reader in readers.split(", "):
                wanted = f"ENV_{name}\\b" if reader == "core" else f"\\b{name}\\b"
                if not re.search(wanted, texts[reader]):
                    missing.append(f"{name} ({reader})")
    return missing


def unlisted(source: Path, compiler: str = "cc") -> list[str]:
    """Variables that the extension or the package reads and the table doesn't have."""
    listed = {body.split("|")[0].strip() for kind, body in re.findall(r"@\s*(\w+)\s+(.*?)@", preprocess(source, compiler), flags=re.DOTALL)}
    pattern = re.compile(r'(?:getenv|environment_\w+|environ(?:\.get|\.setdefault)?)\s*[(\[]"([A-Z][A-Z_0-9]+)"')
    found: set[str] = set()
    for folder in ("bridge", "python"):
        for path in (source / folder).rglob("*"):
            if path.suffix in {".h", ".cpp", ".py"}:
                found |= set(pattern.findall(path.read_text()))
    return sorted(found - listed)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when the page isn't what the table says")
    options = parser.parse_args()
    source = Path(__file__).resolve().parent.parent
    page = source / "docs/environment.md"
    text = document(source)
    if missing := unread(source):
        print(f"nobody reads {', '.join(missing)}: mend src/base/env.def", file=sys.stderr)
        return 1
    if extra := unlisted(source):
        print(f"read but not listed: {', '.join(extra)}: add them to src/base/env.def", file=sys.stderr)
        return 1
    if options.check:
        if page.exists() and page.read_text() == text:
            return 0
        print(f"{page} differs from src/base/env.def: run tools/make_environment_doc.py", file=sys.stderr)
        return 1
    page.parent.mkdir(exist_ok=True)
    page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
