"""Files into records, each with the line it starts on; nothing larger than a block is held.

Readers say what they expected and what they found by raising or yielding `BadRecord`; whoever reads decides
whether that ends the reading or is counted. A record that is fine but is no dialogue is `LeftOut`, with a reason.
"""

from __future__ import annotations

import codecs
import csv
import json
import mmap
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import orjson
import pyarrow as pa

BLOCK_BYTES = 4 << 20
MAX_RECORD_BYTES = 256 << 20  # a longer line is no dialogue, and would not fit in a batch
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


class BadRecord(Exception):
    """A record that is not what its format promises."""

    def __init__(self, expected: str, found: str, line: int = 0) -> None:
        super().__init__(f"expected {expected}, found {found}")
        self.expected, self.found, self.line = expected, found, line

    def at(self, line: int) -> BadRecord:
        """The same problem at this line, unless it knows its own line better."""
        return self if self.line else BadRecord(self.expected, self.found, line)


@dataclass(frozen=True)
class LeftOut:
    """A sound record that is not a dialogue of the corpus (a negative sample, say), and why."""

    reason: str


@dataclass(frozen=True)
class Record:
    """One JSON value, the line it starts on, and its key where the file is one object of records."""

    value: Any
    line: int
    key: str = ""


@dataclass(frozen=True)
class Source:
    """One file on disk, decompressed on the fly. `moved` is told how far into the file reading has come."""

    path: Path
    moved: Callable[[int], None] = lambda position: None

    @property
    def name(self) -> str:
        """File name without `.gz` or `.zst`."""
        return plain_name(self.path)

    @contextmanager
    def opened(self) -> Iterator[tuple[pa.NativeFile, Callable[[], None]]]:
        """The decompressed file, and a function to call after each read, which reports how far reading has come."""
        with pa.OSFile(str(self.path), "rb") as raw:
            codec = COMPRESSED.get(self.path.suffix)
            stream = pa.CompressedInputStream(raw, codec) if codec else raw
            try:
                yield stream, lambda: self.moved(raw.tell())
            except OSError as error:
                raise BadRecord("intact compressed data", f"a damaged file ({error})") from error

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The decompressed bytes in blocks, a byte order mark left out."""
        with self.opened() as (stream, moved):
            first = True
            while block := bytes(stream.read(size)):
                moved()
                yield block[mark_length(block) :] if first else block
                first = False

    def head(self, size: int = 1 << 20) -> bytes:
        """The first bytes, for a look at what the file is."""
        return next(self.blocks(size), b"")


def plain_name(path: Path) -> str:
    """File name without the ending of its compression: `a.txt.gz` -> `a.txt`."""
    return path.stem if path.suffix in COMPRESSED else path.name


def mark_length(block: bytes) -> int:
    """Length of the byte order mark that a file starts with."""
    if block.startswith(UTF16_MARKS):
        raise BadRecord("UTF-8 text", "UTF-16 (convert it with: iconv -f UTF-16 -t UTF-8)", 1)
    return len(codecs.BOM_UTF8) if block.startswith(codecs.BOM_UTF8) else 0


def line_blocks(source: Source) -> Iterator[memoryview]:
    """Blocks that end where a line ends.

    Each block is an anonymous memory map, which goes back to the system as soon as nobody looks at it: blocks from the
    heap, freed between small objects that stay, would leave holes that grow with the file.
    """
    rest, start = b"", -1
    with source.opened() as (stream, moved):
        while True:
            block = mmap.mmap(-1, len(rest) + max(BLOCK_BYTES, len(rest)))
            block[: len(rest)] = rest
            read = stream.readinto(memoryview(block)[len(rest) :])
            moved()
            end = len(rest) + read
            start = mark_length(block[:3]) if start < 0 else 0
            cut = block.rfind(b"\n", 0, end) + 1 if read else end
            if cut > start:
                yield memoryview(block)[start:cut]
            if not read:
                return
            rest = block[cut:end]
            if len(rest) > MAX_RECORD_BYTES:
                raise BadRecord(f"a line of at most {MAX_RECORD_BYTES >> 20} MB", "a longer one")


def map_ahead(function: Callable[[A], B], items: Iterable[A], *, ahead: int = 2) -> Iterator[tuple[A, B]]:
    """Map in threads, a few items ahead and in order: for functions that release the interpreter's lock."""
    with ThreadPoolExecutor(ahead) as threads:
        waiting: deque[tuple[A, Future[B]]] = deque()
        try:
            for item in items:
                waiting.append((item, threads.submit(function, item)))
                if len(waiting) > ahead:
                    done, result = waiting.popleft()
                    yield done, result.result()
        except BadRecord as bad:  # the file breaks off: what was read before that is sound
            yield from ((done, result.result()) for done, result in waiting)
            raise bad
        yield from ((done, result.result()) for done, result in waiting)


def numbered_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    r"""Lines with their numbers, without their ends; `\n`, `\r\n` and a lone `\r` may be mixed."""
    blocks = (line for block in line_blocks(source) for line in bytes(block).splitlines())
    return enumerate(blocks, 1)


def lines(source: Source) -> Iterator[tuple[int, str]]:
    """Numbered lines of text.

    Bytes that are not UTF-8 become lone surrogates: the line survives as a line, and the dialogue it belongs to
    is refused by `why_not_text` with the byte named.
    """
    return ((number, line.decode("utf-8", "surrogateescape")) for number, line in numbered_lines(source))


def why_not_text(text: str) -> str | None:
    """What keeps a string from being stored as UTF-8 text, or None."""
    if "\0" in text:
        return "a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        return f"the byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"the lone surrogate U+{code:04X}"
    return None


def csv_records(source: Source, *, delimiter: str = ",", quoted: bool = True) -> Iterator[Record | BadRecord]:
    """Rows as records keyed by the header; a row of another width is a `BadRecord`."""
    csv.field_size_limit(MAX_RECORD_BYTES)
    texts = (line + "\n" for _, line in lines(source))
    # Strict: a stray quote is an error at its line, and does not swallow the rows after it without a word.
    rows = csv.reader(
        texts, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=quoted
    )
    header = _next_row(rows)
    if isinstance(header, list) and len(set(filter(None, header))) < len(list(filter(None, header))):
        yield BadRecord("a header that names each column once", f"{shown(','.join(header))}", 1)
        return
    while (row := _next_row(rows, line := rows.line_num + 1)) is not None:
        if isinstance(row, BadRecord) or isinstance(header, BadRecord) or header is None:
            yield row if isinstance(row, BadRecord) else BadRecord("a header", "an unreadable one", 1)
        elif row and len(row) != len(header):
            yield BadRecord(f"{len(header)} columns", f"{len(row)}", line)
        elif row:
            yield Record(dict(zip(header, row, strict=True)), line)


def _next_row(rows: Iterator[list[str]], line: int = 1) -> list[str] | BadRecord | None:
    try:
        return next(rows, None)
    except csv.Error as error:
        return BadRecord("comma- or tab-separated values", str(error), line)


# --- JSON: lines, arrays of records, or one object of records --------------------------------------------------------


def json_records(source: Source) -> Iterator[Record | BadRecord]:
    """Every record of a JSON file, whatever its layout: one a line, an array, or an object keyed by id."""
    if is_json_lines(source.head()):
        yield from _json_lines(source)
    else:
        yield from _json_members(source)


def is_json_lines(head: bytes) -> bool:
    """Whether the first line is a record on its own, or tries to be (a truncated one counts as a bad line)."""
    text = head.lstrip()
    line, newline, _ = text.partition(b"\n")
    if not line.startswith(b"{") or line.strip() == b"{":
        return not text.startswith((b"[", b"{"))  # anything but JSON is reported line by line
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        opens_a_record = re.match(rb'\{\s*"[^"]*"\s*:\s*\{', line) is not None
        return not opens_a_record or bool(newline and not line.rstrip().endswith((b",", b"{", b"[")))
    return not record or not all(isinstance(value, dict) for value in record.values())


def _json_lines(source: Source) -> Iterator[Record | BadRecord]:
    return (json_line(line, number) for number, line in numbered_lines(source) if line.strip())


def json_line(line: bytes, number: int) -> Record | BadRecord:
    """One line as a record."""
    try:
        return Record(orjson.loads(line), number)
    except orjson.JSONDecodeError as error:
        return BadRecord("one JSON record on a line", _json_trouble(line, error), number)


def _json_trouble(line: bytes, error: orjson.JSONDecodeError) -> str:
    problem = why_not_text(line.decode("utf-8", "surrogateescape"))
    where = f"{error.msg} at column {error.colno}" if error.colno > 1 else error.msg
    return f"{problem} in {shown(line.decode('utf-8', 'replace'))}" if problem else where


_INK = re.compile(r"\S")


class _JsonText:
    """A window that slides over a JSON text and decodes one value at a time."""

    def __init__(self, source: Source) -> None:
        self.blocks = source.blocks()
        self.decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self.decoder = json.JSONDecoder(parse_constant=_refuse_constant)
        self.text, self.at, self.is_at_end = "", 0, False
        self.line, self.counted = 1, 0  # the line at `counted`; line breaks before it are counted once

    def grow(self) -> None:
        """Forget what was read, and read at least as much again as is left: retries then cost little."""
        self.line_here()
        self.text, self.at, self.counted = self.text[self.at :], 0, 0
        wanted = max(1, len(self.text))
        while not self.is_at_end and wanted > 0:
            block = next(self.blocks, b"")
            self.is_at_end = not block
            self.text += self.decode(block, final=self.is_at_end)
            wanted -= len(block)
        if len(self.text) > MAX_RECORD_BYTES + BLOCK_BYTES:
            self.fail(f"a record of at most {MAX_RECORD_BYTES >> 20} MB", "a longer one")

    def next_mark(self) -> str:
        """The next character that is not blank, or "" at the end."""
        while True:
            match = _INK.search(self.text, self.at)
            if match:
                self.at = match.start()
                return match.group()
            self.at = len(self.text)
            if self.is_at_end:
                return ""
            self.grow()

    def skip(self, mark: str) -> None:
        """Step over this character."""
        found = self.next_mark()
        if found != mark:
            self.fail(f"'{mark}'", f"'{found}'" if found else "the end of the file")
        self.at += 1

    def value(self) -> Any:
        """The JSON value that starts here."""
        while True:
            try:
                value, self.at = self.decoder.raw_decode(self.text, self.at)
                return value
            except json.JSONDecodeError as error:
                if self.is_at_end or not self._may_be_cut(error):
                    self.at = max(self.at, min(error.pos, len(self.text)))
                    self.fail("JSON", "the end of the file inside a record" if self._may_be_cut(error) else error.msg)
            except RecursionError:
                self.fail("JSON", "brackets nested too deeply")
            except BadRecord as bad:
                self.fail(bad.expected, bad.found)
            self.grow()

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether more text could mend this error: it stands at the window's very end, or in an open string."""
        return error.msg.startswith("Unterminated") or error.pos >= len(self.text) - 8

    def line_here(self) -> int:
        """Number of the line at the current place."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def fail(self, expected: str, found: str) -> NoReturn:
        """Report a problem at the current place."""
        raise BadRecord(expected, found, self.line_here())


def _json_members(source: Source) -> Iterator[Record | BadRecord]:
    """Members of one JSON array or object. After a syntax error nothing more can be read with certainty."""
    text = _JsonText(source)
    try:
        opening = text.next_mark()
        text.skip(opening)
        yield from _one_or_many(_members(text, is_object=opening == "{"))
        if text.next_mark():
            text.fail("the end of the file", "more text after the last record")
    except BadRecord as bad:
        yield bad


def _members(text: _JsonText, *, is_object: bool) -> Iterator[Record]:
    closing = "}" if is_object else "]"
    while text.next_mark() != closing:
        line = text.line_here()
        key = text.value() if is_object else ""
        if is_object:
            text.skip(":")
            text.next_mark()
        yield Record(text.value(), line, str(key))
        if text.next_mark() != closing:
            text.skip(",")
    text.skip(closing)


def _one_or_many(members: Iterator[Record]) -> Iterator[Record]:
    """An object of objects holds a record per key; any other object is one record spread over many lines."""
    first = next(members, None)
    if first is None:
        return
    if not first.key or isinstance(first.value, dict):
        yield first
        yield from members
    else:
        yield Record({member.key: member.value for member in (first, *members)}, first.line)


def _refuse_constant(name: str) -> NoReturn:
    raise BadRecord("JSON", f"{name}, which JSON does not have")


# --- Looking into records --------------------------------------------------------------------------------------------

_KINDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object", int: "a number"}


def need(value: Any, kind: type[T], what: str) -> T:
    """The value, if it is of this kind; otherwise a `BadRecord` that says so."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise BadRecord(f"{what} to be {_KINDS[kind]}", describe(value))


def member(record: Any, key: str, kind: type[T]) -> T:
    """The value under this key, checked for its kind."""
    record = need(record, dict, "a record")
    if key not in record:
        raise BadRecord(f"a key '{key}'", f"the keys {_listed(record)}" if record else "an empty record")
    return need(record[key], kind, f"'{key}'")


def without(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    """What is left of a record once these keys are used: it becomes labels, for nothing is dropped silently."""
    return {key: value for key, value in record.items() if key not in keys}


def describe(value: Any) -> str:
    """A JSON value in a few words, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the string {shown(value)}"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"an object with the keys {_listed(value)}" if value else "an empty object"
    return f"the number {str(value)[:20]}" if isinstance(value, int | float) else type(value).__name__


def shown(text: str, length: int = 40) -> str:
    """A quoted, shortened, printable piece of text."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def _listed(names: Iterable[str], most: int = 6) -> str:
    names = [shown(str(name), 30) for name in names]
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
