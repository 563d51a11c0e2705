"""The bytes: a header, the words of a range coder, and check sums.

The header has a fixed part, and a part for each stream of symbols. The words, which the package
constriction makes and reads, hold the tables of frequencies and the symbols. The bytes hold a
fingerprint of the model, not the model.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from noisyica import priors
from noisyica.compression.probabilities import (
    EACH,
    POOLED,
    PRIOR,
    RESOLUTION,
    Stream,
    Table,
    frequencies_of,
    shortest_table,
    streams_of,
    written_order,
)
from noisyica.compression.symbols import MOST_SYMBOLS, Code
from noisyica.model import Model

MAGIC = b"NICA"
VERSION = 1
HEADER = struct.Struct("<4sB3I8s")
"""Magic, version, the numbers of rows, columns and components, and the model's fingerprint."""
STREAM = struct.Struct("<BdiI")
"""The header of a stream, as in :class:`StreamHeader`."""
CHECK = struct.Struct("<I")
"""A check sum. There are two: of the symbols, and of all bytes before it."""
DAMAGED = "The compressed data are damaged: "


class StreamHeader(NamedTuple):
    """Where the frequencies come from, the step, the least symbol and the number of symbols."""

    source: int
    step: float
    low: int
    size: int


def coder() -> Any:
    """Return the module of entropy coders of the package constriction."""
    try:
        import constriction
    except ImportError as error:
        raise ImportError(
            "Compression needs the package constriction: pip install 'noisyica[compression]'."
        ) from error
    return constriction.stream


def _fingerprint(model: Model) -> bytes:
    """Return eight bytes that another model would hardly have."""
    try:
        description = priors.to_plain(model.prior)
    except (TypeError, ValueError):  # a prior that is made of Python functions
        description = type(model.prior).__name__
    digest = hashlib.sha256(json.dumps(description).encode())
    for part in (model.mixing, model.mean, model.noise_variance):
        values = np.ascontiguousarray(part, "<f8")
        digest.update(repr(values.shape).encode() + values.tobytes())
    return digest.digest()[:8]


def _check_of_symbols(code: Code) -> int:
    """Return a check sum of the symbols.

    It tells symbols that were decoded with the probabilities of another prior of the same name,
    or with those that another machine rounds differently.
    """
    scale = code.scale[code.active] if code.scale is not None else np.zeros(0)
    check = zlib.crc32(code.symbols.astype("<i4").tobytes())
    return zlib.crc32(scale.astype("<i4").tobytes(), check)


def _categorical(frequencies: np.ndarray) -> Any:
    """Return the coder's model of symbols that have these frequencies."""
    return coder().model.Categorical(frequencies.astype(float), perfect=False)


# ------------------------------------------------------------------------------------- writing


def pack(model: Model, code: Code) -> bytes:
    """Return the symbols as bytes."""
    encoder = coder().queue.RangeEncoder()
    header = HEADER.pack(
        MAGIC, VERSION, len(code.symbols), *model.mixing.shape, _fingerprint(model)
    )
    for stream in streams_of(model, code).values():
        table = shortest_table(stream)
        header += STREAM.pack(*StreamHeader(table.source, stream.step, table.low, table.size))
        _write_table(encoder, table)
        columns = stream.symbols.reshape(1, -1) if table.source == POOLED else stream.symbols.T
        for column, frequencies in zip(columns, table.frequencies, strict=True):
            if table.size > 1 and column.size:  # if there is one symbol only, it needs no bits
                encoder.encode((column - table.low).astype(np.int32), _categorical(frequencies))
    words = encoder.get_compressed().astype("<u4").tobytes()
    body = header + words + CHECK.pack(_check_of_symbols(code))
    return body + CHECK.pack(zlib.crc32(body))


def _write_table(encoder: Any, table: Table) -> None:
    """Write the frequencies of a table, unless they are the prior's, which the decoder knows.

    Each one is a number from 0 to what the ones before it leave of the sum.
    """
    if table.source == PRIOR:
        return
    for frequencies in table.frequencies[:, written_order(table.low, table.size)]:
        left = int(frequencies.sum())
        for frequency in frequencies[:-1].tolist():
            if left > 0:
                encoder.encode(frequency, coder().model.Uniform(left + 1))
            left -= frequency


# ------------------------------------------------------------------------------------- reading


def unpack(model: Model, data: bytes, max_entries: int) -> Code:
    """Return the symbols that :func:`pack` made the bytes of, or raise a ValueError."""
    n = _check_header(model, data, max_entries)
    n_streams = 1 + model.prior.single_scale + model.prior.has_offset
    start, end = HEADER.size + n_streams * STREAM.size, len(data) - 2 * CHECK.size
    if end < start or (end - start) % 4:
        raise ValueError(DAMAGED + "they end too soon.")
    headers = [StreamHeader(*fields) for fields in STREAM.iter_unpack(data[HEADER.size : start])]
    decoder = coder().queue.RangeDecoder(np.frombuffer(data[start:end], "<u4").astype(np.uint32))
    try:
        code = _read_code(model, n, headers, decoder)
    except AssertionError as error:  # what constriction raises where no encoder wrote the words
        raise ValueError(DAMAGED + str(error)) from error
    if _check_of_symbols(code) != CHECK.unpack_from(data, end)[0]:
        raise ValueError(
            DAMAGED + "the check sum of the symbols is wrong. Or the model's prior contains a "
            "Python function that has changed since they were compressed."
        )
    return code


def _check_header(model: Model, data: bytes, max_entries: int) -> int:
    """Return the number of rows, after all checks that are possible before decoding."""
    if len(data) < HEADER.size + 2 * CHECK.size or not data.startswith(MAGIC):
        raise ValueError("These bytes were not made by noisyica.compress, or they are incomplete.")
    _, version, n, d, p, fingerprint = HEADER.unpack_from(data)
    if version != VERSION:
        raise ValueError(
            f"The compressed data have format {version}, and this version of noisyica reads "
            f"format {VERSION} only: upgrade noisyica."
        )
    if zlib.crc32(data[: -CHECK.size]) != CHECK.unpack(data[-CHECK.size :])[0]:
        raise ValueError(
            DAMAGED + "their check sum is wrong. Something was changed or cut off on the way."
        )
    if (d, p) != model.mixing.shape or fingerprint != _fingerprint(model):
        raise ValueError(
            f"The data were compressed with another model (of {p} components in {d} dimensions) "
            f"than {model!r}: decompress needs the same model, equal to the last digit."
        )
    if n < 1:
        raise ValueError(DAMAGED + "they promise 0 rows.")
    if n * max(d, p) > max_entries:
        raise ValueError(
            f"The data promise {n} rows of {d} entries, more than max_entries={max_entries} "
            "allows: raise max_entries if you trust the source of the data."
        )
    return int(n)


def _read_code(model: Model, n: int, headers: list[StreamHeader], decoder: Any) -> Code:
    """Decode the streams in their order: what one holds tells how the next one is to be read."""
    p, remaining = model.mixing.shape[1], iter(headers)
    header = next(remaining)
    code = Code(p, header.step, np.zeros((n, p + model.prior.has_offset), np.int64))
    code.symbols[:, :p] = _read_stream(streams_of(model, code)["coefficients"], header, decoder)
    if model.prior.single_scale:
        if np.abs(code.symbols[:, :p]).max() > 1:
            raise ValueError(DAMAGED + "a sign is none of -1, 0, 1.")
        header = next(remaining)
        scale = np.ones(n, np.int64)
        code = code._replace(scale_step=header.step, scale=scale)
        decoded = _read_stream(streams_of(model, code)["scale"], header, decoder)
        scale[code.active] = decoded[:, 0]
    if model.prior.has_offset:
        stream = streams_of(model, code)["offset"]
        code.symbols[:, p:] = _read_stream(stream, next(remaining), decoder)
    return code


def _read_stream(stream: Stream, header: StreamHeader, decoder: Any) -> np.ndarray:
    """Decode symbols in the shape of those of ``stream``."""
    source, step, low, size = header
    if not (
        source <= EACH
        and 1e-100 < step < 1e100
        and 1 <= size <= MOST_SYMBOLS
        and abs(low) < MOST_SYMBOLS
    ):
        raise ValueError(DAMAGED + "a stream of symbols has an impossible header.")
    shape = stream.symbols.shape
    if not stream.symbols.size:
        return stream.symbols
    masses = stream.prior(low, size) if source == PRIOR else None
    if source == PRIOR and (masses is None or masses.shape != (shape[1], size)):
        raise ValueError(DAMAGED + "the prior has no such symbols.")
    if masses is None:
        frequencies = _read_table(decoder, source, low, size, shape)
    else:
        frequencies = frequencies_of(masses)
    if size == 1:
        return np.full(shape, low)
    if source == POOLED:
        decoded = decoder.decode(_categorical(frequencies[0]), shape[0] * shape[1])
        return low + decoded.astype(np.int64).reshape(shape)
    columns = [decoder.decode(_categorical(column), shape[0]) for column in frequencies]
    return low + np.array(columns, np.int64).T


def _read_table(
    decoder: Any, source: int, low: int, size: int, shape: tuple[int, int]
) -> np.ndarray:
    """Return the frequencies that :func:`_write_table` wrote for symbols of this shape."""
    count, total = (1, shape[0] * shape[1]) if source == POOLED else (shape[1], shape[0])
    frequencies = np.zeros((count, size), np.int64)
    order = written_order(low, size)
    for row in frequencies:
        left = min(total, RESOLUTION)
        for k in order[:-1]:
            if left > 0:
                row[k] = decoder.decode(coder().model.Uniform(left + 1))
            left -= row[k]
        row[order[-1]] = left
    return frequencies
