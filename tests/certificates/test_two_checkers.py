"""Both checkers against an adversary who chooses all bytes of a file: archives, sizes, and long arithmetic.

`second_opinion` compares them on every file of test_travel.py and test_forgeries.py as well.
"""

import hashlib
import resource
import struct
import tracemalloc
from fractions import Fraction

import numpy as np

from kernelopt.certificates import check
from kernelopt.extend import Statement
from tests.certificates.forgeries import SEAL, members_of, packed, sealed, text
from tests.certificates.saved import verdict
from tests.every import every

LONG = "7" * 20_000
LARGE = f"{'3' * 19_000}1/{LONG}"
RNG = np.random.default_rng(0)
WIDE = 2.0 ** RNG.integers(-1000, 900, size=(40, 40))
DIRECTORY = b"PK\1\2"


def problem(n=0, columns=1, rows=0, ball=None, order=0):
    """Return the documents and arrays of a statement with claims of nothing, and x = 1."""
    stated = Statement(["x"] * columns, [False] * columns)
    for _ in range(rows):
        stated.row("row", range(columns), [0.0] * columns, 0.0)
    if n:
        K = np.broadcast_to(np.eye(n), (columns, n, n))
        stated.set_witness(stated.risk(K, range(columns), np.ones((3, n)), np.zeros((2, n))), L=np.eye(n) / 2)
    if ball:
        stated.ball(np.zeros((ball["rows"], columns)), 0.0, float(Fraction(ball["p"])))
    if order:
        stated.cone(np.zeros((columns, order, order)))
    statement, _, arrays = stated.contents()
    names = {"columns": stated.columns, "rows": ["row"] * rows}
    witness = {"lower": "-inf", "upper": "inf", "infeasible": False, "names": names}
    witness |= {"u": ["0"] * rows, "x": ["1"] * columns, "mix": [["0"] * columns] * bool(order)}
    return {"statement": statement, "witness": witness}, arrays


def sealed_again(target, raw):
    """Write bytes of a file, with the right seal instead of the last 64 bytes."""
    target.write_bytes(raw[:-SEAL] + hashlib.sha256(raw[:-SEAL]).hexdigest().encode())
    return target


# ------------------------------------------------------------------------------------ the archive


def changed_archives():
    """Yield (what, bytes) of archives with one oddity that some readers of ZIP files take."""
    members = members_of(*problem(n=3))
    raw = packed(members)
    start, end = raw.index(DIRECTORY), len(raw) - SEAL - 22
    (count, size, at) = struct.unpack("<HII", raw[end + 10 : end + 20])

    def ending(tail_start, count=count, size=size, disk=0):
        return (
            struct.pack("<4s4H2IH", b"PK\5\6", disk, disk, count, count, size, tail_start, SEAL) + b"0" * SEAL
        )

    second = raw.index(b"PK\3\4", 4)
    yield "bytes before the archive", b"#!/bin/sh\n" + raw
    yield "bytes before it, with places moved", (b"junk" + raw[:end] + ending(at + 4))
    yield "bytes before the directory", raw[:start] + b"junk" + raw[start:end] + ending(at + 4)
    yield "bytes after the directory", raw[:end] + b"junk" + raw[end:]
    yield "bytes after the archive", raw + b"junk" + b"0" * SEAL
    yield "two directories", raw[:end] + raw[start:end] + ending(end)
    yield "a directory twice as long", raw[:end] + raw[start:end] + ending(at, 2 * count, 2 * size)
    yield "a member fewer", raw[:end] + ending(at, count - 1)
    yield "several disks", raw[:end] + ending(at, disk=1)
    yield "no directory", raw[:start] + ending(start, 0, 0)
    yield "empty", b""
    yield "short", b"0" * SEAL
    yield "another name in the header", raw.replace(b"statement.json", b"Statement.json", 1)
    for where, what in (
        (6, "a flag"),
        (8, "a method"),
        (10, "a time"),
        (14, "a CRC-32"),
        (18, "a packed size"),
        (22, "a size"),
        (28, "an extra field"),
    ):
        yield f"{what} in one header", raw[:where] + b"\1" + raw[where + 1 :]
        both = bytearray(raw)
        both[where], both[start + where + 2] = 9, 9
        if what != "a time":
            yield f"{what} in both headers", bytes(both)
    yield "a place in the directory", raw[: start + 42] + struct.pack("<I", second) + raw[start + 46 :]
    yield "a comment of a member", raw[: start + 32] + b"\1" + raw[start + 33 :]
    zip64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    yield "ZIP64", raw[:end] + zip64 + locator + ending(0xFFFFFFFF, 0xFFFF, 0xFFFFFFFF)
    yield "a name with a NUL", raw.replace(b"statement.json", b"statement.jso\0")


def test_only_one_layout_of_an_archive_is_read(target):
    for what, raw in changed_archives():
        assert not verdict(sealed_again(target, raw))[0], what


def test_free_fields_of_an_archive_change_nothing(target):
    """An attribute that looks like the end of a large archive, another order, and other versions."""
    facts, arrays = problem(n=3)
    members = members_of(facts, arrays)
    members.sort(key=lambda member: member[0] == "witness.json")
    raw = packed(members)
    last = raw.rindex(DIRECTORY)
    assert raw[last + 46 :].startswith(b"witness.json")
    assert verdict(sealed_again(target, raw[: last + 38] + b"PK\6\7" + raw[last + 42 :]))[0]
    assert verdict(sealed_again(target, packed(members[::-1])))[0]
    assert verdict(sealed_again(target, raw[:4] + b"\x2d" + raw[5:]))[0]


# ------------------------------------------------------------------------------ documents and numbers


def test_large_counts_take_no_memory(target):
    facts, arrays = problem(n=3)
    for key in ("columns", "rows", "entries"):
        changed = facts | {"statement": facts["statement"] | {key: 2**31 - 1}}
        tracemalloc.start()
        assert not verdict(sealed(target, changed, arrays))[0]
        assert tracemalloc.get_traced_memory()[1] < 10**6
        tracemalloc.stop()
    huge = [{"kernels": 2**15 - 1, "points": 2**15 - 1, "bias": True}] * 1000
    tracemalloc.start()
    assert not verdict(sealed(target, facts | {"statement": facts["statement"] | {"risks": huge}}, arrays))[0]
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


@every(
    "claim", ["0x1.8p+1", "3.0", "0X1.8000000000000P+1", "+0x1.8000000000000p+1", "infinity", "-nan", "-Inf"]
)
def test_other_spellings_of_claims_are_refused(claim, target):
    assert not verdict(sealed(target, *problem(n=3), lower=claim))[0]
    assert not verdict(sealed(target, *problem(n=3), upper=claim))[0]


@every("claim", ["-0x0.0p+0", "0x0.0p+0", "-0x0.0000000000001p-1022", "0x1.fffffffffffffp+1023"])
def test_claims_of_every_size_are_compared_exactly(claim, target):
    """The optimum is 0 at x = 0, without a constraint: minimum of offset 0."""
    facts, arrays = problem()
    number = float.fromhex(claim)
    assert verdict(sealed(target, facts, arrays, lower=claim))[0] == (number <= 0)
    assert verdict(sealed(target, facts, arrays, upper=claim))[0] == (number >= 0)


@every("bits", [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF])
def test_nan_of_every_payload_is_refused(bits, target):
    facts, arrays = problem(n=3, ball={"rows": 2, "p": "2"}, order=2)
    for name, a in arrays.items():
        if a.dtype.kind == "f" and a.size:
            changed = a.copy()
            changed.ravel()[-1:] = np.array([bits], "<u8").view("<f8")
            assert not verdict(sealed(target, facts, arrays | {name: changed}))[0], name


def test_negative_zero_is_zero(target):
    facts, arrays = problem(n=3, ball={"rows": 2, "p": "2"}, order=2)
    negative = {name: np.where(a == 0, -0.0, a) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    assert verdict(sealed(target, facts, negative, x=["-0"]))[0]


def test_documents_have_one_text(target):
    facts, arrays = problem(n=3)
    for old, new in ((b'"1"', b'"\\u0031"'), (b'"x"', b'"\xc3\xa9"'), (b"false", b"0"), (b'"1"', b"1.0")):
        changed = text(facts["witness"]).replace(old, new, 1)
        assert changed != text(facts["witness"])
        target.write_bytes(packed(members_of(facts | {"witness": changed}, arrays)))
        assert not verdict(target)[0], new
    for more in (b'{"a":' * 10**5, b"[" * 10**5 + b"]" * 10**5, b"NaN", b"-0", b"1e999", b"\xef\xbb\xbf{}"):
        target.write_bytes(packed(members_of(facts | {"statement": more}, arrays)))
        assert not verdict(target)[0], more[:10]


# -------------------------------------------------------------------------------------- long arithmetic


def long_work():
    """Yield (what, documents, arrays, other witness) that take minutes or gigabytes without limits."""
    facts, arrays = problem(n=40)
    yield "a factor from 2^-1000 to 2^900", facts, arrays | {"L0": WIDE}, {}
    yield "kernels from 2^-1000 to 2^900", facts, arrays | {"K0": (WIDE + WIDE.T)[None]}, {}
    curve = np.array([*WIDE[:3]])
    wide = {"curve0": curve, "beta0": WIDE[4], "alpha0": WIDE[4], "ridge0": np.array(5e-324)}
    yield "curvatures from 2^-1000 to 2^900", facts, arrays | wide, {}
    yield "weights of 20,000 digits", facts, arrays, {"x": [LARGE]}
    facts, arrays = problem(columns=100)
    without_common = [f"1/{'1' * 19_000}{i:03}" for i in range(1, 101)]
    yield "weights without a common denominator", facts, arrays, {"x": without_common}
    facts, arrays = problem(columns=2000, rows=1)
    arrays["value"] = RNG.normal(size=2000)
    yield "a long multiplier of many columns", facts, arrays, {"u": [LARGE]}
    facts, arrays = problem(columns=300, rows=1, order=1)
    mix = [[f"1/{'3' * 9000}1", *["0"] * 299]]
    yield "multipliers with two denominators", facts, arrays, {"u": [f"1/{'7' * 9000}"], "mix": mix}
    for p in ("10000", "10000/63", "2"):
        facts, arrays = problem(ball={"rows": 300, "p": p})
        arrays |= {"B0": np.full((300, 1), 1e-300 / 3), "radius0": np.array(1e300 / 3)}
        arrays |= {"y0": np.full(300, 1e-300 / 7), "h0": np.array(1e300 / 7), "t0": np.full(300, 1e-300 / 7)}
        arrays["s0"] = arrays["t0"]
        yield f"powers of 1,000 bits at p = {p}", facts, arrays, {}
        yield f"powers of 60,000 bits at p = {p}", facts, arrays, {"x": [LARGE]}


def test_no_file_takes_long(target):
    for what, facts, arrays, witness in long_work():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        verdict(sealed(target, facts, arrays, **witness))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert after - before < 2e5, what  # kilobytes


@every("scale", [-500, 0, 500])
def test_the_bits_of_a_factor_do_not_depend_on_its_scale(scale, target):
    """M = 4^scale I is shown definite by L = 2^scale diag(1, 2^-119), which has 120 bits, and no more."""
    facts, arrays = problem(n=2)
    facts["statement"]["risks"][0]["bias"] = False
    arrays |= {"ends0": np.array([[0.0, 0.0], [1.0, 1.0]]), "K0": np.diag([4.0**scale, 4.0**scale])[None]}
    for power, fits in ((-119, True), (-120, False)):
        L = np.diag([2.0**scale, 2.0 ** (scale + power)])
        valid, _ = verdict(sealed(target, facts, arrays | {"L0": L}, upper=(2.0).hex()))
        assert valid == fits


def test_a_file_of_many_long_entries_is_refused(target):
    """20,000 digits of 250,000 entries of a kernel are two gigabytes, and the file has four megabytes."""
    facts, arrays = problem(n=500)
    valid, said = check.verdict(sealed(target, facts, arrays, x=[LARGE]))
    assert not valid and "must have at most 4000 digits, got 1" in said
